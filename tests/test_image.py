"""The container image: what its Dockerfile promises, and that its steps give a proxy that runs."""

import os
import re
import subprocess
from pathlib import Path

import aiohttp
import pytest

from tests import rig
from tests.parts.dockerfile import Build, Stage, may_be_copied, stages
from tests.rig import ROOT, until

BUILD, IMAGE = stages((ROOT / "Dockerfile").read_text())
IGNORE = (ROOT / ".dockerignore").read_text()


def test_it_listens_for_others_and_keeps_the_admin_page_to_itself():
    assert IMAGE.environment["CACHEPROXY_LISTEN__HOST"] == "0.0.0.0"
    assert not [name for name in IMAGE.environment if "ADMIN" in name]
    assert IMAGE.one("EXPOSE").split() == ["8800", "8801"]


def test_it_keeps_answers_in_a_volume_that_its_user_owns():
    assert IMAGE.one("VOLUME") == IMAGE.environment["CACHEPROXY_STORE__DATA_DIR"] == "/data"
    uid, gid = IMAGE.one("USER").split(":")
    assert uid == gid != "0"
    assert f"--uid {uid}" in IMAGE.one("RUN")
    assert re.search(r"install --directory --owner=cacheproxy .*/data", IMAGE.one("RUN"))
    words = [word for word, _ in IMAGE.steps]
    assert words.index("RUN") < words.index("VOLUME"), "what changes a volume after its declaration is lost"
    assert words.index("USER") > words.index("RUN")


def test_it_starts_the_proxy_itself_so_that_signals_reach_it():
    assert IMAGE.command("ENTRYPOINT") == ["cacheproxy", "serve"]
    assert IMAGE.one("ENTRYPOINT").startswith("[")


def test_everything_is_installed_from_the_lock_with_hashes():
    installs = [part for text in BUILD.all("RUN") for part in text.split("&&") if " install " in part]
    assert len(installs) == 3
    assert all("--require-hashes" in part or "--no-deps --no-index" in part for part in installs)
    assert BUILD.base == IMAGE.base == "python:3.11-slim"


def test_nothing_but_what_is_needed_is_sent_to_the_build():
    assert not any(may_be_copied(name, IGNORE) for name in (".git", ".venv", ".parts", "tests", "cacheproxy-data"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The build stage done, below a folder."""
    build = Build(tmp_path_factory.mktemp("image"), IGNORE)
    build.do(BUILD)
    return build


def _environment(build: Build, image: Stage) -> dict[str, str]:
    """The image's environment and nothing of ours but what the proxy must not see."""
    return {name: build.inside(value) for name, value in image.environment.items()}


def _found(build: Build, command: list[str]) -> list[str]:
    """A command with its program looked up on the image's PATH."""
    program = next(
        place / command[0]
        for place in map(Path, _environment(build, IMAGE)["PATH"].split(":"))
        if (place / command[0]).exists()
    )
    return [str(program), *command[1:]]


def _health(build: Build, admin: str) -> int:
    port = admin.rsplit(":", 1)[1]
    command = [part.replace(":8801", f":{port}") for part in _found(build, IMAGE.command("HEALTHCHECK"))]
    return subprocess.run(command, env=_environment(build, IMAGE), check=False, capture_output=True).returncode


async def test_what_it_builds_serves_and_is_healthy(built, backend, session: aiohttp.ClientSession, tmp_path):
    """The proxy of the image answers, keeps in /data, is healthy while it runs and unhealthy when it does not."""
    log = tmp_path / "log"
    command = [
        *_found(built, IMAGE.command("ENTRYPOINT")),
        "--upstream",
        backend.url,
        "--port",
        "0",
        "--admin-port",
        "0",
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd="/", stdout=out, stderr=out, env=_environment(built, IMAGE))
    try:
        await until(lambda: "ready:" in log.read_text() or process.poll() is not None, 30, "readiness")
        ready = re.search(
            r"ready: http://0\.0\.0\.0:(\d+) answers .* admin page (http://127\.0\.0\.1:\d+)", log.read_text()
        )
        assert ready, log.read_text()
        client = rig.Client(f"http://127.0.0.1:{ready.group(1)}", session)
        caches = [(await client.chat()).cache for _ in range(2)]
        assert caches == ["MISS", "HIT"]
        assert list((built.root / "data").glob("*.sqlite3"))
        assert _health(built, ready.group(2)) == 0
    finally:
        process.kill()
        process.wait()
    assert _health(built, ready.group(2)) != 0


def test_it_refuses_to_publish_the_admin_page_without_a_token(built):
    environment = {**_environment(built, IMAGE), "CACHEPROXY_ADMIN__HOST": "0.0.0.0"}
    command = [*_found(built, ["cacheproxy", "check"]), "--upstream", "http://backend:8000"]
    refused = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "admin.token" in refused.stderr
    environment["CACHEPROXY_ADMIN__TOKEN"] = "a-long-token"
    assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0


def test_what_it_builds_is_whole_and_no_more(built):
    """The page and the type marker are in; nothing that installs packages is."""
    packages = built.root / "opt" / "cacheproxy" / "lib"
    assert list(packages.glob("*/site-packages/cacheproxy/http/dashboard/index.html"))
    assert list(packages.glob("*/site-packages/cacheproxy/py.typed"))
    assert not list(packages.glob("*/site-packages/tests"))
    assert not list(packages.glob("*/site-packages/pip"))
    assert os.path.islink(built.root / "opt" / "cacheproxy" / "bin" / "python")
