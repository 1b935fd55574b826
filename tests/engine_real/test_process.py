"""The proxy as a process of its own before the real engine: restarts, credentials, the doctor."""

import json
import subprocess
import sys

import pytest

from tests import rig
from tests.engine_real.asking import BODIES, FORMS, KEY, name_of, usages, work_done
from tests.rig import CHAT


@pytest.fixture
async def before(tmp_path):
    """Starts proxies in processes of their own before any upstream: ``await before(url, "--port", "0")``."""
    started: list[rig.Process] = []

    async def begin(url: str, *arguments: str) -> rig.Process:
        log = tmp_path / f"proxy{len(started)}.log"
        started.append(await rig.spawn(url, log, *arguments, CACHEPROXY_DRAIN__GRACE="0"))
        return started[-1]

    yield begin
    for process in started:
        if process.process.poll() is None:
            process.kill()


@pytest.mark.parametrize("recorded", FORMS, ids=name_of)
async def test_a_restart_is_warm(before, engine, direct, session, tmp_path, recorded):
    data = str(tmp_path / "data")
    first = await before(engine.url, "--data-dir", data)
    one = await rig.Client(first.base, session).send({**BODIES[CHAT], **recorded}, key=None)
    first.terminate()
    assert await first.exit() == 0, first.output()
    second = await before(engine.url, "--data-dir", data)
    before_hits = await work_done(direct)
    for form in FORMS:
        two = await rig.Client(second.base, session).send({**BODIES[CHAT], **form}, key=None)
        assert (one.cache, two.cache, two.text) == ("MISS", "HIT", one.text)
        assert usages(two) or form == {"stream": True}
    assert await work_done(direct) == before_hits


async def test_a_killed_proxy_comes_back_with_what_it_had(before, engine, session, tmp_path):
    data = str(tmp_path / "data")
    first = await before(engine.url, "--data-dir", data)
    client = rig.Client(first.base, session)
    one, again = await client.send(BODIES[CHAT]), await client.send(BODIES[CHAT])
    first.kill()
    second = await before(engine.url, "--data-dir", data)
    client = rig.Client(second.base, session)
    two, other = await client.send(BODIES[CHAT]), await client.send(BODIES[CHAT], key="B")
    assert (one.cache, again.cache, other.cache) == ("MISS", "HIT", "MISS")
    assert two.status == 200
    assert two.text == one.text
    third = await client.send({**BODIES[CHAT], "stream": True})
    assert (third.cache, third.text) == ("HIT", one.text)


async def test_only_the_credential_that_the_engine_accepts_is_served(before, guarded, session):
    """B30: a wrong or missing key gets the engine's 401, whatever is stored."""
    proxy = await before(guarded.url, "--data-dir", "none")
    client = rig.Client(proxy.base, session)
    answers = [await client.send(BODIES[CHAT], key=key) for key in (KEY, KEY, "wrong", None, KEY)]
    assert [(a.status, a.cache) for a in answers] == [
        (200, "MISS"), (200, "HIT"), (401, "MISS"), (401, "MISS"), (200, "HIT"),
    ]  # fmt: skip


def doctor(url: str, *arguments: str) -> tuple[int, dict]:
    command = [sys.executable, "-m", "cacheproxy", "doctor", "--upstream", url, "--json", *arguments]
    done = subprocess.run(command, check=False, cwd=rig.ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_the_doctor_finds_the_engine_well(engine, tmp_path, suffix):
    code, report = doctor(engine.url + suffix, "--data-dir", str(tmp_path))
    assert (code, report["ok"]) == (0, True), report
    assert any(f["part"].startswith("backend") and "200" in f["message"] for f in report["findings"])


def test_the_doctor_sees_that_a_credential_is_asked(guarded, tmp_path):
    code, report = doctor(guarded.url, "--data-dir", str(tmp_path))
    assert code == 0, report
    assert any(f["part"].startswith("backend") and "credential" in f["message"] for f in report["findings"])


def test_the_doctor_says_what_to_do_about_a_dead_engine(tmp_path):
    code, report = doctor("http://127.0.0.1:9", "--data-dir", str(tmp_path))
    assert (code, report["ok"]) == (1, False)
    assert [f["part"] for f in report["findings"] if not f["ok"]] == ["backend http://127.0.0.1:9"]
    assert all(f["message"] for f in report["findings"])
