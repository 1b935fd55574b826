"""``cacheproxy doctor`` of knowledge bases: each folder and the stream of events is well, or it is said what to do."""

import os

import pytest

from cacheproxy.report import examine
from cacheproxy.settings import resolve
from cacheproxy.stores.redis_events import STREAM
from tests.redis_fixtures import PASSWORD, USER, login, redis, redis_acl, redis_acl_server, redis_server, redis_start  # noqa: F401

OTHERS = "+get +set +exists +eval +evalsha +ping +info +config|get +module|list +client|setname +client|setinfo"


def told(part: str, **values) -> tuple[bool, str] | None:
    named = {name.replace("__", "."): value for name, value in values.items()}
    flags = {"upstreams": ["http://127.0.0.1:1"], "store.data_dir": "none", "semantic.mode": "off", **named}
    found = {one["part"]: (one["ok"], one["message"]) for one in examine(resolve(flags, None, {}).settings)}
    return found.get(part)


def watched(path, **more) -> tuple[bool, str]:
    return told("kb.watch faq", kb__watch=[{"name": "faq", "path": str(path)}], **more)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "faq" / "sub").mkdir(parents=True)
    (tmp_path / "faq" / "a.md").write_text("A" * 2**20)
    (tmp_path / "faq" / "sub" / "b.md").write_text("B")
    (tmp_path / "faq" / ".git").write_text("x")
    return tmp_path / "faq"


def test_a_folder_is_well(folder):
    assert watched(folder) == (True, f"{folder} can be read: 2 files, 1.0 MiB")
    assert watched(folder / "a.md")[1].endswith("1 files, 1.0 MiB")


def test_an_empty_folder_is_said_to_be(tmp_path):
    ok, message = watched(tmp_path)
    assert (ok, "has no files" in message) == (True, True)


@pytest.mark.parametrize(
    ("values", "words"),
    [({"kb__max_files": 1}, "more than 1 files (`kb.max_files`)"), ({"kb__max_bytes": 2**20}, "`kb.max_bytes`")],
)
def test_a_folder_beyond_the_bounds(folder, values, words):
    ok, message = watched(folder, **values)
    assert (ok, words in message, message.endswith("nothing is served that rests on it")) == (False, True, True)


def test_a_folder_that_is_not_there(tmp_path):
    ok, message = watched(tmp_path / "no")
    assert (ok, f"{tmp_path / 'no'} cannot be read: No such file" in message) == (False, True)


@pytest.mark.parametrize("name", ["a.md", "sub"])
def test_what_may_not_be_read(folder, name, monkeypatch):
    """A file alone is enough."""
    inner, listed = os.open, os.scandir

    def refuse(path, *more):
        if str(path).endswith(name):
            raise PermissionError(13, "Permission denied", str(path))
        return inner(path, *more) if more else listed(path)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "scandir", refuse)
    ok, message = watched(folder)
    assert (ok, "cannot be read: Permission denied" in message) == (False, True)


def events(url: str, **more) -> tuple[bool, str]:
    return told("kb.events", redis__url=url, redis__timeout="5s", **more)


@pytest.mark.redis
def test_the_stream_is_well(redis, redis_acl):  # noqa: F811
    """Also for the user of configs/redis.conf; nothing is made, and no event is taken."""
    for server in (redis, redis_acl):
        before = server.cli("KEYS", "*")
        assert events(server.url) == (True, f"{STREAM} can be read; nothing was told on it yet")
        assert server.cli("KEYS", "*") == before == []
        server.cli("XADD", STREAM, "*", "a", "b")
        assert events(server.url) == (True, f"{STREAM} can be read (no proxy has read it yet)")
        assert server.cli("XINFO", "GROUPS", STREAM) == []
        server.cli("XGROUP", "CREATE", STREAM, "cacheproxy", "0")
        server.cli("XREADGROUP", "GROUP", "cacheproxy", "one", "STREAMS", STREAM, ">")
        assert events(server.url) == (True, f"{STREAM} can be read (1 events being carried out)")
        assert len(server.cli("XINFO", "CONSUMERS", STREAM, "cacheproxy")) == 1


@pytest.mark.redis
def test_what_lies_there_is_no_stream(redis):  # noqa: F811
    redis.cli("SET", STREAM, "x")
    ok, message = events(redis.url)
    assert (ok, "is no stream" in message) == (False, True)


@pytest.mark.redis
@pytest.mark.parametrize(
    ("commands", "denied"),
    [
        ("+xreadgroup +xautoclaim +xpending +xgroup|create", "xack"),
        ("+xack", "xreadgroup, xautoclaim, xpending, xgroup|create"),
        ("+xreadgroup +xautoclaim +xpending +xack", "xgroup|create"),
    ],
)
@pytest.mark.parametrize("there", [False, True])
def test_what_the_user_may_not_do_is_named(redis_start, commands, denied, there):  # noqa: F811
    server = redis_start(search=False)
    server.cli("ACL", "SETUSER", USER, "on", f">{PASSWORD}", "~*", *f"{OTHERS} {commands}".split())
    if there:
        server.cli("XADD", STREAM, "*", "a", "b")
    ok, message = events(login(server.url))
    assert not ok
    assert f"may not use {denied} on {STREAM}" in message
    assert f"~{STREAM}" in message


@pytest.mark.redis
def test_a_user_who_may_not_touch_its_name(redis_start):  # noqa: F811
    server = redis_start(search=False)
    server.cli("ACL", "SETUSER", USER, "on", f">{PASSWORD}", "~cacheproxy:e*", "+@all")
    server.cli("ACL", "SETUSER", USER, "resetkeys", "~other:*")
    ok, message = events(login(server.url))
    assert (ok, f"~{STREAM}" in message) == (False, True)


@pytest.mark.redis
def test_where_it_is_switched_off_or_redis_is_away(redis, redis_start):  # noqa: F811
    assert events(redis.url, kb__events=False)[0]
    gone = redis_start(search=False)
    gone.stop()
    assert events(gone.url) is None  # what to do is said of Redis itself
