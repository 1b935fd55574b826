"""B49: forms in which two hops could see different requests. Refused with 400 and the end of the connection, or taken:
then the backend has exactly one well-framed request for each answer; never one that hides in another.

What the backend got is read by a parser of the tests' own that knows no leniency.
"""

import json

import pytest

from tests import rig
from tests.hostile import forms, refused, strict
from tests.hostile.caller import converse
from tests.hostile.tap import Tap, echo, echoed, tapping

LAST = b"GET /v1/last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
LAST_ASKED = (b"GET", b"/v1/last", b"")
HONEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
SHORT = 2_000


@pytest.fixture
async def tap():
    async with tapping() as running:
        yield running


@pytest.fixture
async def port(tap, start):
    """The port of a proxy before the tap."""
    return (await start(upstream=tap.url)).port


def judge(heard: bytes, tap: Tap) -> list[int]:
    """What holds whatever the form: as many well-framed requests at the backend as good answers, each answer to its own
    request, and nothing hidden among them. The statuses."""
    answers = strict.answers(heard, [r.first[0] for r in tap.requests])
    good = [a for a in answers if a.first[0].startswith(b"2")]
    assert len(good) == len(tap.requests), (heard[:500], tap.asked)
    for answer, asked in zip(good, tap.asked, strict=True):
        assert asked[0] == b"HEAD" or echoed(answer) == echo(*asked)
    assert tap.faults == []
    assert not any(target.startswith(b"/v1/hidden") for _, target, _ in tap.asked)
    assert not any(b"hidden" in a.body for a in answers if a not in good), "an error of ours repeats what was sent"
    return [int(a.first[0]) for a in answers]


async def assert_honest(port: int, tap: Tap, name: str) -> None:
    """An honest request gets its own answer, and no connection to the backend has a byte of anything else."""
    tap.requests.clear()
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": f"after {name}"}]}).encode()
    heard = await converse(port, HONEST + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    assert judge(heard, tap) == [200]
    assert tap.asked == [(b"POST", b"/v1/chat/completions", body)]
    await rig.until(lambda: not any(tap.waiting), what="the end of every unfinished request at the backend")


def assert_refused(heard: bytes, before: int = 0) -> None:
    last = strict.answers(heard, [])[before]
    assert json.loads(last.body)["error"]["code"] == "invalid_header"


IN_PIECES = [n for n, form in refused.REFUSED.items() if len(form) < SHORT and n not in refused.BROKEN_BODIES]


@pytest.mark.parametrize(
    ("name", "bytewise"), [*((name, False) for name in refused.REFUSED), *((name, True) for name in IN_PIECES)]
)
async def test_refused(start, tap, name, bytewise):
    """In one packet or byte by byte: 400, nothing behind it is read, nothing is stored."""
    proxy = await start(upstream=tap.url)
    heard = await converse(proxy.port, refused.REFUSED[name] + LAST, bytewise=bytewise)
    assert judge(heard, tap) == [400]
    assert_refused(heard)
    assert proxy.house.store.census().entries == 0
    await assert_honest(proxy.port, tap, name)


@pytest.mark.parametrize("name", refused.BROKEN_BODIES)
async def test_body_that_breaks_once_it_is_waited_for(start, tap, name):
    """The head comes first, its body byte by byte: the wait ends with the refusal, and so does the backend's call."""
    proxy = await start(upstream=tap.url)
    form = refused.BROKEN_BODIES[name]
    statuses = judge(await converse(proxy.port, form + LAST, bytewise=len(form) < SHORT), tap)
    assert statuses == [400]
    assert tap.requests == []
    assert proxy.house.store.census().entries == 0
    await assert_honest(proxy.port, tap, name)


@pytest.mark.parametrize("name", refused.REFUSED)
async def test_refused_behind_an_honest_request(port, tap, name):
    """The honest one has its answer, or shares the refusal of the packet it came in; the other is refused as alone."""
    heard = await converse(port, forms.NEXT + refused.REFUSED[name] + LAST)
    assert judge(heard, tap) in ([400], [200, 400])
    assert tap.asked in ([], [forms.Y])
    await assert_honest(port, tap, name)


@pytest.mark.parametrize("bytewise", [False, True])
@pytest.mark.parametrize("name", forms.TAKEN)
async def test_taken(port, tap, name, bytewise):
    """Every request has its answer, in order, and so has the one that follows."""
    form, asked = forms.TAKEN[name]
    heard = await converse(port, form + LAST, bytewise=bytewise and len(form) < SHORT)
    judge(heard, tap)
    assert tap.asked == [*asked, LAST_ASKED]
    await assert_honest(port, tap, name)


@pytest.mark.parametrize("bytewise", [False, True])
@pytest.mark.parametrize("name", forms.CLOSING)
async def test_taken_as_the_last(port, tap, name, bytewise):
    """One request, one answer, and nothing behind it is read."""
    form, asked = forms.CLOSING[name]
    heard = await converse(port, form, bytewise=bytewise)
    assert judge(heard, tap) == [200]
    assert tap.asked == asked
    handshake = form.startswith(forms.GET) and b"websocket" in form and b"Connection:" in form
    assert [r.all(b"upgrade") for r in tap.requests] == [[b"websocket"] if handshake else []]
    await assert_honest(port, tap, name)


@pytest.mark.parametrize("name", forms.UNFINISHED)
async def test_unfinished(start, tap, name):
    """What the client does not finish is no request: the backend sees none, or one that breaks off visibly."""
    proxy = await start(upstream=tap.url)
    heard = await converse(proxy.port, forms.UNFINISHED[name], leave=True)
    assert judge(heard, tap) in ([], [400], [413])
    assert proxy.house.store.census().entries == 0
    await assert_honest(proxy.port, tap, name)


TRAILERS = [
    b"Authorization: Bearer B\r\nX-Cache-Namespace: n\r\nCookie: a=b\r\n",
    b"Host: y\r\n",
]


@pytest.mark.parametrize("bytewise", [False, True])
@pytest.mark.parametrize("trailers", TRAILERS)
async def test_trailers_are_of_no_request(port, tap, trailers, bytewise):
    """Neither of the one that they follow nor of the one that follows them."""
    data = forms.POST + forms.CHUNKED + forms.chunked(trailers=trailers) + LAST
    judge(await converse(port, data, bytewise=bytewise), tap)
    for request in tap.requests:
        assert {n.lower() for n, _ in request.fields} <= {b"host", b"transfer-encoding", b"content-length"}


@pytest.mark.parametrize("named", [b"authorization", b"Authorization, Host", b"transfer-encoding, authorization, host"])
async def test_credential_named_as_hop_by_hop(port, tap, named):
    """B48: it still says whose request this is, here and at the backend: no answer crosses to who has none."""

    async def ask(credential: bytes) -> strict.Message:
        head = forms.CHAT + credential + b"Connection: close, " + named + b"\r\n"
        message, rest = strict.answer(await converse(port, head + forms.whole()))
        assert rest == b""
        return message

    for credential in (b"Authorization: Bearer A\r\n", b"Authorization: Bearer B\r\n", b""):
        assert (await ask(credential)).all(b"x-cache") == [b"MISS"]
    assert [r.all(b"authorization") for r in tap.requests] == [[b"Bearer A"], [b"Bearer B"], []]
    assert (await ask(b"Authorization: Bearer A\r\n")).all(b"x-cache") == [b"HIT"]


async def test_pipelined_requests_are_answered_in_order(port, tap):
    """Two honest requests in one packet are two requests, each with its own answer."""
    assert judge(await converse(port, forms.NEXT + LAST), tap) == [200, 200]
    assert tap.asked == [forms.Y, LAST_ASKED]


async def test_the_parser_without_extensions_lets_nothing_through(tap, tmp_path):
    """aiohttp's parser in plain Python judges some forms the other way, and none worse."""
    process = await rig.spawn(
        tap.url, tmp_path / "log", "--data-dir", "none", AIOHTTP_NO_EXTENSIONS="1", CACHEPROXY_EXACT__MODE="off"
    )
    try:
        await assert_parser_judges(process, tap)
    finally:
        process.kill()
    assert "Traceback" not in process.output()


async def assert_parser_judges(process: rig.Process, tap: Tap) -> None:
    for name, form in refused.REFUSED.items():
        tap.forget()
        heard = await converse(process.port, form + LAST, leave=name in refused.WAITED_FOR)
        statuses = judge(heard, tap)
        assert set(statuses) <= {200, 400}, (name, statuses)
        assert name in refused.READ_OTHERWISE or statuses == [400], (name, statuses)
        await assert_honest(process.port, tap, f"{name} as {form!r}")
    for name, (form, asked) in forms.TAKEN.items():
        tap.forget()
        judge(await converse(process.port, form + LAST), tap)
        assert name in refused.READ_OTHERWISE or tap.asked == [*asked, LAST_ASKED], name
        await assert_honest(process.port, tap, name)
