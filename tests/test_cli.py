"""The commands as a user runs them: exit codes, one sentence for every mistake, never a traceback, secrets masked."""

import json
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator

import pytest

from cacheproxy import __version__
from cacheproxy.settings import names
from cacheproxy.stores.sqlite import Sqlite
from tests.commands import Commands
from tests.rig import ROOT
from tests.stores.entries import entry

BACKEND = "http://127.0.0.1:8000"
TOKEN = "hunter2-hunter2"


@pytest.fixture(scope="module")
def commands(tmp_path_factory) -> Iterator[Commands]:
    """Runs commands."""
    started = Commands(tmp_path_factory.mktemp("commands"))
    yield started
    started.close()


@pytest.fixture
def run(commands):
    """Runs one: ``done = await run("check", "--port", "1")``."""
    return commands.run


# --- the command itself ----------------------------------------------------------------------------------------------


def test_it_runs_as_a_module():
    """The one test that starts it from nothing: ``python -m cacheproxy``."""
    command = [sys.executable, "-m", "cacheproxy", "--version"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"cacheproxy, version {__version__}\n"


async def test_help_names_every_command(run):
    done, short, bare = await run("--help"), await run("-h"), await run()
    assert (done.code, done.err) == (0, "")
    for command in ("serve", "check", "doctor"):
        assert f"\n  {command} " in done.out
    assert "cacheproxy serve --upstream http://127.0.0.1:8000" in done.out
    assert short.out == done.out
    assert bare.code == 2


@pytest.mark.parametrize("command", ["serve", "check", "doctor"])
async def test_help_of_a_command_names_its_flags(run, command):
    done = await run(command, "--help")
    assert (done.code, done.err) == (0, "")
    for flag in ("--config", "--upstream", "--host", "--port", "--admin-host", "--admin-port", "--data-dir"):
        assert flag in done.out


@pytest.mark.parametrize("arguments", [["serv"], ["serve", "--prot", "1"], ["serve", "--port", "x"], ["check", "more"]])
async def test_a_wrong_call_is_explained(run, arguments):
    done = await run(*arguments)
    assert done.code == 2
    assert "Error: " in done.err
    assert done.out == ""


# --- check -----------------------------------------------------------------------------------------------------------


async def test_check_shows_every_value_and_where_it_comes_from(run, tmp_path):
    """Each name once, its value, its origin; the last line is `ok`."""
    path = tmp_path / "c.yaml"
    path.write_text(f"upstreams: [{BACKEND}]\nexact: {{ttl: 30m, max_ttl: 2h}}\n")
    environment = {
        "CACHEPROXY_EXACT__TTL": "40m",
        "CACHEPROXY_DRAIN__GRACE": "7",
        "CACHEPROXY_PORT": "tcp://10.0.0.1:1",
    }
    arguments = ("check", "--config", str(path), "--port", "9000")
    plain = await run(*arguments, environment=environment)
    machine = await run(*arguments, "--json", environment=environment)
    assert (plain.code, plain.err, machine.code, machine.err) == (0, "", 0, "")
    *lines, last = plain.out.splitlines()
    assert last == "ok"
    shown = {line.split()[0]: line for line in lines}
    assert set(shown) == {name for name in names() if "[]" not in name}
    report = json.loads(machine.out)
    assert report["ok"] is True
    values = {row["name"]: (row["value"], row["origin"]) for row in report["values"]}
    assert set(values) == set(shown)
    for name, value, origin in (
        ("exact.ttl", 2400, "environment CACHEPROXY_EXACT__TTL"), ("exact.max_ttl", 7200, f"file {path}"),
        ("drain.grace", 7, "environment CACHEPROXY_DRAIN__GRACE"), ("listen.port", 9000, "flag"),
        ("admin.port", 8801, "default"),
    ):  # fmt: skip
        assert values[name] == (value, origin)
        assert shown[name].endswith(f"({origin})")
        assert str(value) in shown[name]


async def test_check_masks_secrets(run):
    """B85: neither form shows the token, wherever it came from."""
    for arguments, environment in (
        (["--admin-token", TOKEN], {}),
        (["--json"], {"CACHEPROXY_ADMIN__TOKEN": TOKEN}),
    ):
        done = await run("check", "--upstream", BACKEND, *arguments, environment=environment)
        assert done.code == 0
        assert TOKEN not in done.out + done.err
        assert "**********" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["--upstream"]),
        (["--upstream", BACKEND, "--admin-host", "0.0.0.0"], ["admin.host", "admin.token"]),
        (["--upstream", BACKEND, "--port", "9000", "--admin-port", "9000"], ["listen.port", "admin.port"]),
        (["--upstream", BACKEND, "--config", "nowhere.yaml"], ["nowhere.yaml"]),
        (["--upstream", BACKEND, "--port", "70000"], ["listen.port"]),
        (["--upstream", BACKEND, "--admin-token", "short"], ["admin.token"]),
        (["--upstream", f"http://u:{TOKEN}@a:1"], ["upstream"]),
    ],
)
async def test_check_refuses_what_serve_would_refuse(run, arguments, words):
    """Exit code 2 and one sentence, the same from both."""
    checked, served = await run("check", *arguments), await run("serve", "--data-dir", "none", *arguments)
    for done in (checked, served):
        assert (done.code, done.out) == (2, "")
        assert all(word in done.sentence for word in words)
        assert TOKEN not in done.err
    assert checked.sentence == served.sentence


async def test_an_unknown_variable_is_refused_with_the_nearest_name(run):
    done = await run("check", "--upstream", BACKEND, environment={"CACHEPROXY_EXACT__TTTL": "5"})
    assert done.code == 2
    assert "CACHEPROXY_EXACT__TTTL" in done.sentence
    assert "`exact.ttl`" in done.sentence


async def test_a_broken_file_is_refused_in_one_sentence(run, tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(f'admin: {{token: "{TOKEN}\n')
    done = await run("check", "--config", str(path))
    assert done.code == 2
    assert str(path) in done.sentence
    assert TOKEN not in done.err


# --- serve -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["--port", "--admin-port"])
async def test_a_port_in_use_is_told_in_one_sentence(run, which):
    """Which listener, which port, what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ports = {"--port": "0", "--admin-port": "0", which: port}
        flags = [word for pair in ports.items() for word in pair]
        done = await run("serve", "--upstream", BACKEND, "--data-dir", "none", *flags)
    assert (done.code, done.out) == (2, "")
    assert ("admin page" if which == "--admin-port" else "proxy") in done.sentence
    assert f"127.0.0.1:{port}" in done.sentence
    assert "choose another" in done.sentence


async def test_a_host_that_is_not_here_is_told_in_one_sentence(run):
    done = await run("serve", "--upstream", BACKEND, "--data-dir", "none", "--host", "192.0.2.1", "--admin-port", "0")
    assert done.code == 2
    assert "192.0.2.1:8800" in done.sentence


@pytest.mark.parametrize("url", ["ftp://a", "http://", "http://a:99999", "http://[::1", "http://a/v1?x=1", "", "://"])
async def test_a_wrong_backend_is_told_in_one_sentence(run, url):
    """By every command, before anything is started."""
    flags = ("--upstream", url, "--data-dir", "none")
    every = [await run(command, *flags) for command in ("check", "doctor")]
    every.append(await run("serve", *flags, "--port", "0", "--admin-port", "0"))
    for done in every:
        assert done.code == 2
        assert "upstream" in done.sentence


# --- doctor ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def doctor(run):
    """Runs `doctor`: the exit code, and for each part whether it is ok and the message."""

    async def examine(*arguments: str) -> tuple[int, dict[str, tuple[bool, str]]]:
        done = await run("doctor", *arguments, "--json")
        report = json.loads(done.out)
        assert done.err == ""
        assert report["ok"] == all(finding["ok"] for finding in report["findings"])
        return done.code, {f["part"].split()[0]: (f["ok"], f["message"]) for f in report["findings"]}

    return examine


async def test_doctor_finds_all_well(doctor, run, backend, tmp_path):
    code, found = await doctor("--upstream", backend.url, "--data-dir", str(tmp_path / "new"))
    assert code == 0
    assert found["backend"] == (True, "answers (GET /v1/models: 200)")
    assert found["disk"][0]
    assert backend.calls == 0, "no inference is paid for"
    plain = await run("doctor", "--upstream", backend.url + "/v1/", "--data-dir", "none")
    assert plain.code == 0
    assert [line[:6] for line in plain.out.splitlines()] == ["ok    "] * len(plain.out.splitlines())
    assert f"backend {backend.url}: answers" in plain.out
    assert {s.target for s in backend.seen} == {b"/v1/models"}


@pytest.mark.parametrize(
    ("status", "media", "body", "ok", "words"),
    [
        ("401 Unauthorized", "application/json", b"{}", True, "credential"),
        ("403 Forbidden", "application/json", b"{}", True, "credential"),
        ("404 Not Found", "application/json", b"{}", True, "/v1/models"),
        ("500 Internal Server Error", "text/plain", b"no", False, "500"),
        ("302 Found", "text/html", b"", False, "302"),
        ("200 OK", "text/html", b"<html><h1>It works!</h1></html>", False, "OpenAI-compatible"),
        ("200 OK", "application/json", b"not json", False, "OpenAI-compatible"),
    ],
)
async def test_doctor_tells_what_the_backend_is(doctor, backend, status, media, body, ok, words):
    """Asking for a credential is well, having no list of models is well; a web page in its place is not."""

    async def script(exchange) -> None:
        await exchange.head(status, Content_Type=media, Content_Length=str(len(body)))
        await exchange.send(body)

    backend.script = script
    code, found = await doctor("--upstream", backend.url, "--data-dir", "none")
    assert found["backend"][0] is ok
    assert words in found["backend"][1]
    assert code == (0 if ok else 1)


async def test_doctor_tells_of_a_backend_that_is_down(run, backend):
    """Each backend is told of; one that is down is enough for exit code 1."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    gone = f"http://127.0.0.1:{port}"
    done = await run("doctor", "--upstream", backend.url, "--upstream", gone, "--data-dir", "none")
    assert done.code == 1
    good, bad = (line for line in done.out.splitlines() if "backend" in line)
    assert good.startswith("ok    backend")
    assert bad.startswith(f"FAIL  backend {gone}: ")
    assert "is it running" in bad.lower()
    assert done.err == ""


async def test_doctor_tells_of_a_backend_that_speaks_something_else(doctor, backend):
    async def script(exchange) -> None:
        await exchange.send(b"SSH-2.0-OpenSSH_9.2p1\r\n")
        exchange.close = True

    backend.script = script
    code, found = await doctor("--upstream", backend.url, "--data-dir", "none")
    assert (code, found["backend"][0]) == (1, False)


async def test_doctor_tells_of_a_disk_that_cannot_be_written(doctor, backend, tmp_path):
    """And what to do; it makes nothing there."""
    (tmp_path / "plain").write_text("a file")
    code, found = await doctor("--upstream", backend.url, "--data-dir", str(tmp_path / "plain" / "data"))
    assert code == 1
    assert found["backend"][0]
    assert found["disk"][0] is False
    assert "--data-dir" in found["disk"][1]
    assert [p.name for p in tmp_path.iterdir()] == ["plain"]


@pytest.mark.parametrize("name", ["data", "odd #1? 50%", "ünïcode"])
async def test_doctor_counts_what_is_kept(doctor, backend, tmp_path, name):
    """Whatever the directory is called; looking changes nothing."""
    directory = tmp_path / name
    store = Sqlite(directory / "cache.sqlite3", 10_000_000)
    for number in range(3):
        await store.put(entry(number))
    await store.close()
    code, found = await doctor("--upstream", backend.url, "--data-dir", str(directory))
    assert (code, found["disk"][0]) == (0, True), found["disk"]
    assert found["disk"][1].startswith("3 answers kept")
    assert not (directory / ".probe").exists()


async def test_doctor_tells_of_a_cache_file_that_cannot_be_used(doctor, backend, tmp_path):
    (tmp_path / "cache.sqlite3").write_text("This is no database.\n" * 100)
    code, found = await doctor("--upstream", backend.url, "--data-dir", str(tmp_path))
    assert (code, found["disk"][0]) == (1, False)
    assert "set aside" in found["disk"][1]
    with pytest.raises(sqlite3.DatabaseError):
        sqlite3.connect(tmp_path / "cache.sqlite3").execute("SELECT 1 FROM entry")
