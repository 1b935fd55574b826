"""``make run`` as a newcomer meets it: what it prints works, Ctrl-C ends it, a taken port is said in one sentence."""

import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.rig import ROOT


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _demo(port: int, admin_port: int) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.parts.demo", "--port", str(port), "--admin-port", str(admin_port)]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _output(line: str) -> str:
    """What a line prints that a person types into a shell."""
    return subprocess.run(["sh", "-c", line], check=True, capture_output=True, text=True, timeout=60).stdout


def _text(answer: str) -> str:
    """The words of an answer that is not a stream."""
    return json.loads(answer.replace("\r\n", "\n").partition("\n\n")[2])["choices"][0]["message"]["content"]


@contextlib.contextmanager
def _killed_at_last(process: subprocess.Popen):
    """Leave no process behind, whatever a test finds."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=30)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is missing")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_printed_lines_work_and_ctrl_c_ends_it(number, engine):
    port, admin_port = _free(), _free()
    with _killed_at_last(_demo(port, admin_port)) as demo:
        printed = ""
        for line in demo.stdout:
            printed += line
            if "Ctrl-C" in line:
                break
        lines = re.findall(r"^ +(curl .*)$", printed, re.MULTILINE)
        assert len(lines) == 5, printed + demo.stderr.read()
        answers = [_output(line) for line in lines]
        told = [dict(re.findall(r"^X-Cache-?(Tier|Reason|): (\w+)", a, re.MULTILINE)) for a in answers]
        assert told == [
            {"": "MISS", "Reason": "nothing_near"},
            {"": "HIT", "Tier": "exact"},
            {"": "HIT", "Tier": "exact"},
            {"": "HIT", "Tier": "semantic"},
            {"": "MISS", "Reason": "unlike"},
        ]
        assert all(a.startswith("HTTP/1.1 200") for a in answers)
        assert _text(answers[0]) == _text(answers[1]) == _text(answers[3]) != ""
        assert all(("data: [DONE]" in a) == (a is answers[2]) for a in answers)
        page = re.search(rf"http://\S+:{admin_port}/", printed)
        with urllib.request.urlopen(page.group(), timeout=10) as answer:
            assert answer.status == 200
            assert b"<html" in answer.read().lower()
        began = time.monotonic()
        demo.send_signal(number)
        _, errors = demo.communicate(timeout=30)
        assert (demo.returncode, errors) == (0, "")
        assert time.monotonic() - began < 10
    assert not _is_taken(port)
    assert not _is_taken(admin_port)


@pytest.mark.parametrize("which", ["proxy", "admin page"])
def test_a_taken_port_is_said_in_one_sentence(which, engine):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        ports = (taken, _free()) if which == "proxy" else (_free(), taken)
        with _killed_at_last(_demo(*ports)) as demo:
            _, errors = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert errors.count("\n") == 1, errors
    assert str(taken) in errors
    assert which in errors
    assert ("ADMIN_PORT=" if which == "admin page" else " PORT=") in errors
