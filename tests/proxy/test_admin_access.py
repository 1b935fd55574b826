"""Every route of the admin listener by every way to come without the right to: refused as documented. The routes are
the router's own."""

import json

import pytest

from cacheproxy.core.key import entry_id
from cacheproxy.errors import ConfigurationError
from cacheproxy.http import tokens
from cacheproxy.http.calls import CALLS, may_read
from cacheproxy.http.tokens import Failures
from cacheproxy.settings import resolve
from tests import rig
from tests.proxy.doors import FULL, READ, Caller, filled, routes

OPEN = {"/livez", "/readyz", "/metrics"}
READS = {("POST", "/admin/lookup"), ("POST", "/admin/replay")}
"""What changes nothing though its method might."""


def closed(proxy) -> list[tuple[str, str]]:
    return [(method, path) for method, path in routes(proxy) if path not in OPEN]


@pytest.fixture
def patient(monkeypatch):
    """Nobody is kept waiting for too many wrong tokens."""
    monkeypatch.setattr(tokens, "BURST", 10**6)


@pytest.fixture
async def guarded(start, patient):
    return await start(admin__token=FULL, admin__read_token=READ)


def refused(status: int, body) -> str:
    """The code of a refusal in the documented form."""
    assert isinstance(body, dict), body
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert body["error"]["type"] == "invalid_request_error"
    return f"{status} {body['error']['code']}"


def strangers(path: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Ways to come without a token of the admin API: a path, and header fields."""
    mark = "&" if "?" in path else "?"
    return {
        "no token": (path, {}),
        "a wrong token": (path, {"Authorization": "Bearer wrong-token"}),
        "a token cut short": (path, {"Authorization": f"Bearer {FULL[:-1]}"}),
        "a token and more": (path, {"Authorization": f"Bearer {FULL}x"}),
        "both tokens": (path, {"Authorization": f"Bearer {FULL} {READ}"}),
        "another case": (path, {"Authorization": f"Bearer {FULL.upper()}"}),
        "a caller's key": (path, {"Authorization": "Bearer A"}),
        "another scheme": (path, {"Authorization": f"Basic {FULL}"}),
        "no scheme": (path, {"Authorization": FULL}),
        "an empty token": (path, {"Authorization": "Bearer "}),
        "another field": (path, {"X-Api-Key": FULL}),
        "a token in the query": (f"{path}{mark}token={FULL}&access_token={FULL}", {}),
        "a forged peer": (path, {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1"}),
        "a method in a field": (path, {"X-HTTP-Method-Override": "GET"}),
        "a foreign page": (path, {"Origin": "https://evil.example"}),
    }


async def test_every_route_is_refused_to_strangers(guarded, session):
    """B85."""
    caller = Caller(session, guarded.admin)
    for method, path in closed(guarded):
        for way, (target, headers) in strangers(filled(path)).items():
            said = refused(*await caller.call(method, target, **headers))
            assert said == "401 unauthorized", (method, path, way)
    assert not guarded.house.proxy.draining


async def test_a_token_that_is_no_text_is_refused(guarded):
    port = int(guarded.admin.rsplit(":", 1)[1])
    head = b"GET /admin/stats HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xff\xfe\xed\xa0\x80\r\n"
    reply = await rig.raw(port, head + b"Connection: close\r\n\r\n")
    assert reply.split(b" ")[1] == b"401"


TRICKS = [
    "/{}", "//{}", "/./{}", "/x/../{}", "/livez/../{}", "/livez/..%2f{}", "/livez%2f..%2f{}", "/livez;/{}", "/%2e/{}",
    "/{}/", "/{}//", "/{}%00", "/{}.json", "/{}?/livez", "/{}%3f", "/{}#", "/{};x=1", "/livez\\..\\{}",
]  # fmt: skip


@pytest.mark.parametrize("trick", TRICKS)
async def test_paths_that_spell_a_route_otherwise_are_refused(guarded, trick):
    """B85: whatever the router makes of them."""
    port = int(guarded.admin.rsplit(":", 1)[1])
    for method, path in closed(guarded):
        for spelled in {filled(path)[1:], filled(path)[1:].upper(), filled(path)[1:].replace("a", "%61")}:
            target = trick.format(spelled)
            for verb in (method, "GET", "POST"):
                head = f"{verb} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                status = (await rig.raw(port, head.encode())).split(b" ")[1]
                assert status in (b"401", b"400"), (verb, target)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "PATCH", "PUT", "DELETE"])
async def test_other_methods_are_refused(guarded, session, method):
    for _, path in closed(guarded):
        async with session.request(method, guarded.admin + filled(path)) as answer:
            assert answer.status == 401
            assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "data",
    [b"BREW /admin/SECRET-7 HTTP/1.1\r\nHost: x\r\n\r\n", b"SECRET-7\r\n\r\n", b"GET / HTTP/1.1\r\nSECRET-7\r\n\r\n",
     b"GET /" + b"SECRET-7" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
     b"POST /admin/purge HTTP/1.1\r\nHost: x\r\nContent-Length: SECRET-7\r\n\r\n"],
    ids=["method", "no HTTP", "field", "too long", "length"],
)  # fmt: skip
async def test_what_is_no_http_is_refused_in_the_same_form(guarded, caplog, data):
    reply = await rig.raw(int(guarded.admin.rsplit(":", 1)[1]), data)
    head, _, body = reply.partition(b"\r\n\r\n")
    assert refused(int(head.split(b" ")[1]), json.loads(body)) == "400 invalid_request"
    assert b"SECRET-7" not in reply
    assert "SECRET-7" not in caplog.text


async def test_a_token_that_reads_reads_and_no_more(guarded, session):
    reader = Caller(session, guarded.admin, READ)
    for method, path in closed(guarded):
        status, body = await reader.call(method, filled(path))
        if (method == "GET" and path != "/admin/export") or (method, path) in READS:
            assert status not in (401, 403), (method, path)
        else:
            assert refused(status, body) == "403 forbidden", (method, path)
    for path in ("/admin/purge", "/admin/nothing", "/admin//purge", "/admin/kb/a/b", "/admin/stats"):
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            assert (await reader.call(method, path))[0] == 403
    assert not guarded.house.proxy.draining


async def test_a_full_token_passes_everywhere(guarded, session):
    full = Caller(session, guarded.admin, FULL)
    for method, path in closed(guarded):
        if path != "/admin/drain":
            assert (await full.call(method, filled(path)))[0] not in (401, 403), (method, path)
    assert (await full.post("/admin/drain"))[0] == 202


async def test_every_route_is_in_the_table_of_calls_and_the_reverse(guarded):
    """What is described, what a token may read and what is written down come from that table."""
    pages = {("GET", path) for path in ("/", "/page.js", "/page.css")}
    assert set(routes(guarded)) - pages == set(CALLS)
    assert {pair for pair in CALLS if pair[0] != "GET" and may_read(*pair)} == READS
    assert {path for (_, path), call in CALLS.items() if call.open} == OPEN


async def test_without_a_token_foreign_pages_reach_no_route(proxy, session):
    caller = Caller(session, proxy.admin)
    for method, path in closed(proxy):
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Origin": "null"}):
            said = refused(*await caller.call(method, filled(path), **headers))
            assert said == "403 forbidden", (method, path)


async def test_with_a_reading_token_alone_nobody_changes_anything(start, session):
    proxy = await start(admin__read_token=READ)
    assert (await Caller(session, proxy.admin).post("/admin/drain"))[0] == 401
    assert (await Caller(session, proxy.admin, READ).post("/admin/drain"))[0] == 403
    assert (await Caller(session, proxy.admin, READ).get("/admin/stats"))[0] == 200


async def test_too_many_wrong_tokens_and_the_peer_has_to_wait(start, session, monkeypatch):
    """Whoever guesses learns nothing more, not even that a guess was right."""
    monkeypatch.setattr(tokens, "BURST", 3)
    monkeypatch.setattr(tokens, "EVERY", 1000.0)
    proxy = await start(admin__token=FULL)
    wrong, right = Caller(session, proxy.admin, "wrong-token"), Caller(session, proxy.admin, FULL)
    for _ in range(5):
        assert (await Caller(session, proxy.admin).get("/admin/stats"))[0] == 401  # no token is no guess
    assert (await right.get("/admin/stats"))[0] == 200
    assert [(await wrong.get("/admin/stats"))[0] for _ in range(5)] == [401, 401, 401, 429, 429]
    assert (await right.get("/admin/stats"))[0] == 429
    async with session.get(proxy.admin + "/admin/stats", headers=wrong.headers) as answer:
        assert 900 < int(answer.headers["Retry-After"]) <= 1000
        assert refused(answer.status, await answer.json()) == "429 too_many_failures"
    assert (await right.get("/livez"))[0] == 200


def test_failures_are_counted_by_peer_and_forgiven_with_time():
    failures, now = Failures(), 1000.0
    for _ in range(tokens.BURST):
        assert failures.wait("10.0.0.1", now) == 0
        failures.note("10.0.0.1", now)
    assert failures.wait("10.0.0.1", now) == pytest.approx(tokens.EVERY)
    assert failures.wait("10.0.0.2", now) == failures.wait(None, now) == 0
    assert failures.wait("::ffff:10.0.0.1", now) > 0
    assert failures.wait("10.0.0.1", now + tokens.EVERY) == 0
    failures.note("10.0.0.1", now + tokens.EVERY)
    assert failures.wait("10.0.0.1", now + tokens.EVERY) > 0
    assert failures.wait("10.0.0.1", now + 10 * tokens.BURST * tokens.EVERY) == 0
    for _ in range(tokens.BURST):
        failures.note("2001:db8::1", now)
    assert failures.wait("2001:db8::ffff:2%eth0", now) > 0
    assert failures.wait("2001:db8:0:1::1", now) == 0


def test_nobody_saves_up_failures():
    """A peer that was quiet for long may fail no more often in a row than any other."""
    failures, now = Failures(), 1_000_000.0
    failures.note("10.0.0.1", 0.0)
    for _ in range(tokens.BURST):
        assert failures.wait("10.0.0.1", now) == 0
        failures.note("10.0.0.1", now)
    assert failures.wait("10.0.0.1", now) > 0


def test_only_so_many_peers_are_remembered():
    failures = Failures()
    for number in range(2 * tokens.PEERS):
        failures.note(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 0.0)
    assert len(failures._due) == tokens.PEERS


async def test_tokens_from_a_file_are_exchanged_while_it_runs(start, session, tmp_path, patient):
    """Old alone, old and new, new alone; what cannot be read is worth nothing."""
    file, reading = tmp_path / "tokens", tmp_path / "reading"
    file.write_text("the-old-token\n")
    reading.write_text(f"\n {READ} \r\n")
    proxy = await start(admin__token_file=str(file), admin__read_token_file=str(reading))

    async def valid(*names: str) -> list[str]:
        return [n for n in names if (await Caller(session, proxy.admin, n).get("/admin/stats"))[0] == 200]

    both = ("the-old-token", "the-new-token")
    assert await valid(*both, READ) == ["the-old-token", READ]
    assert (await Caller(session, proxy.admin, READ).post("/admin/drain"))[0] == 403
    file.write_text("the-old-token\nthe-new-token\n")
    assert await valid(*both) == list(both)
    other = tmp_path / "other"
    other.write_text("the-new-token")
    other.rename(file)
    assert await valid(*both) == ["the-new-token"]
    for bad in ("", "short", "a-first-token\na-second-token\na-third-token"):
        file.write_text(bad)
        assert await valid(*both, "short", "a-first-token", "", READ) == [READ]
    file.unlink()
    assert await valid(*both, READ) == [READ]
    file.write_text("the-new-token")
    assert await valid(*both) == ["the-new-token"]


@pytest.mark.parametrize("content", [None, "", "\n \n", "short", "one-long-token\nanother-token\na-third-token"])
async def test_a_file_of_no_use_stops_the_start(start, tmp_path, content):
    if content is not None:
        (tmp_path / "tokens").write_text(content)
    with pytest.raises(ConfigurationError, match=r"admin\.read_token_file"):
        await start(admin__read_token_file=str(tmp_path / "tokens"))


@pytest.mark.parametrize("name", ["token", "read_token", "token_file", "read_token_file"])
def test_others_may_reach_it_once_a_token_is_set(name):
    told = {"upstreams": ["http://127.0.0.1:1"], "admin.host": "0.0.0.0"}
    with pytest.raises(ConfigurationError, match=r"admin\.token"):
        resolve(told, None, {})
    assert resolve({**told, f"admin.{name}": FULL}, None, {})


def test_one_token_for_both_is_refused():
    with pytest.raises(ConfigurationError, match=r"admin\.read_token"):
        told = {"upstreams": ["http://127.0.0.1:1"], "admin.token": FULL, "admin.read_token": FULL}
        resolve(told, None, {})


async def test_no_token_is_told(start, session, caplog):
    proxy = await start(admin__token=FULL, admin__read_token=READ)
    caller = Caller(session, proxy.admin, FULL)
    told = [
        await caller.get("/admin/config"),
        await caller.get("/admin/stats"),
        await caller.get("/admin/openapi.json"),
    ]
    await caller.call("DELETE", f"/admin/entries/{entry_id(b'x')}")
    assert not any(token in json.dumps(told) + caplog.text for token in (FULL, READ))
