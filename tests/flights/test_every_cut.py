"""A stream is cut at every place and gone on with: the parts make the whole, no event comes twice, one call is made.

What a caller has after a break is what the standard for event streams says: whole events and the id of the last of
them; the beginning of an event that did not come to its end counts for nothing.
"""

import re

import pytest

from tests import rig
from tests.fakes.backend import gives
from tests.flights.callers import Caller, Street
from tests.flights.forms import FORMS, Form
from tests.flights.stage import Stage
from tests.redis_fixtures import redis, redis_server  # noqa: F401

IDS = {"X-Cache-Event-Ids": "on"}
LEAVES = {"reset": Caller.leave, "closed": Caller.close, "not noticed": lambda caller: None}


def whole_events(body: bytes) -> bytes:
    """What has come, without an event that has no end."""
    return body[: body.rfind(b"\n\n") + 2] if b"\n\n" in body else b""


def ids(body: bytes) -> list[bytes]:
    return re.findall(rb"^id: (\S+)$", body, re.MULTILINE)


def bare(body: bytes) -> bytes:
    return re.sub(rb"^id: \S+\n", b"", body, flags=re.MULTILINE)


async def ask(street: Street, form: Form, got: bytes = b"") -> Caller:
    """Begin, or go on after what is there."""
    last = {"Last-Event-ID": ids(got)[-1].decode()} if got else IDS
    return await street.stream(path=form.path, body=form.body, headers=last)


def is_right(form: Form, got: bytes) -> bool:
    """Each event once, in order, with an id of its own."""
    return bare(got) == form.whole and len(set(ids(got))) == len(ids(got)) == len(form.events)


def staged(backend, form: Form) -> Stage:
    backend.script = Stage(form.events)
    return backend.script


@pytest.mark.parametrize("leave", LEAVES)
@pytest.mark.parametrize("name", FORMS)
async def test_at_every_event_while_it_is_generated(field, backend, name, leave):
    """At each of them the connection breaks, and the caller is back before the next one."""
    form, street = FORMS[name], field.street
    stage = staged(backend, form)
    caller = await ask(street, form)
    got = b""
    for number in range(1, len(form.events)):
        await stage.let(number)
        await caller.events(1)
        got += caller.body
        LEAVES[leave](caller)
        caller = await ask(street, form, got)
        await caller.until(lambda caller=caller: caller.head)
    await stage.let()
    got += (await caller.end()).body
    assert is_right(form, got)
    assert len(backend.seen) == 1


@pytest.mark.parametrize("name", FORMS)
async def test_at_every_event_by_all_at_once(field, backend, name):
    """While it is generated each of them goes on after another event, and nobody has left."""
    form, street = FORMS[name], field.street
    stage = staged(backend, form)
    first = await ask(street, form)
    await stage.let(len(form.events) - 1)
    events = await first.events(len(form.events) - 1)
    rests = [await ask(street, form, b"".join(events[: number + 1])) for number in range(len(events))]
    await stage.let()
    whole = (await first.end()).body
    assert is_right(form, whole)
    for number, rest in enumerate(rests):
        assert b"".join(events[: number + 1]) + (await rest.end()).body == whole
    assert len(backend.seen) == 1


@pytest.mark.parametrize("window", ["60s", "0s"], ids=["held", "stored"])
@pytest.mark.parametrize("name", FORMS)
async def test_at_every_byte_after_its_end(field_of, backend, name, window):
    """Most of the cuts are inside an event: its beginning is thrown away, and it comes again as a whole."""
    form = FORMS[name]
    field = await field_of(flight__resume_window=window)
    await staged(backend, form).let()
    whole = (await (await ask(field.street, form)).end()).body
    assert is_right(form, whole)
    rests: dict[bytes, bytes] = {}
    for size in range(whole.index(b"\n\n") + 2, len(whole) + 1):
        got = whole_events(whole[:size])
        if got not in rests:
            rests[got] = (await (await ask(field.street, form, got)).end()).body
        assert got + rests[got] == whole
    assert len(rests) == len(form.events)
    assert len(backend.seen) == 1


@pytest.mark.parametrize("name", FORMS)
async def test_inside_an_event_while_it_is_generated(field, backend, name):
    """The backend itself has said only a part of it when the connection breaks."""
    form, street = FORMS[name], field.street
    halves = [half for event in form.events for half in (event[: len(event) // 2], event[len(event) // 2 :])]
    backend.script = stage = Stage(halves)
    caller = await ask(street, form)
    got = b""
    for number in range(3, len(halves), 2):
        await stage.let(number)
        await caller.events(1)
        got += whole_events(caller.body)
        caller.leave()
        caller = await ask(street, form, got)
    await stage.let()
    got += (await caller.end()).body
    assert is_right(form, got)
    assert len(backend.seen) == 1


@pytest.mark.parametrize("name", FORMS)
async def test_at_every_event_of_what_was_recorded_as_a_document(field, backend, name):
    """Who asked for JSON was first: the events are made of the document, each time the same."""
    form, street = FORMS[name], field.street
    backend.script = gives(form.document)
    assert (await (await street.call(path=form.path, body=form.body)).end()).json == form.document
    whole = (await (await ask(street, form)).end()).body
    told = ids(whole)
    assert len(told) == len(set(told)) == whole.count(b"\n\n") > 2
    events = [event + b"\n\n" for event in whole.split(b"\n\n")[:-1]]
    for number in range(1, len(events) + 1):
        got = b"".join(events[:number])
        assert got + (await (await ask(street, form, got)).end()).body == whole
    assert len(backend.seen) == 1


@pytest.mark.redis
@pytest.mark.parametrize("name", FORMS)
async def test_at_every_event_by_turns_at_two_replicas(spawn, redis, backend, name):  # noqa: F811
    """Each connection is left open, so that its break is not noticed, and the caller goes on at the other replica."""
    form = FORMS[name]
    stage = staged(backend, form)
    proxies = [await spawn("--redis-url", redis.url, CACHEPROXY_REDIS__TIMEOUT="2s") for _ in range(2)]
    streets = [Street(proxy.port) for proxy in proxies]
    try:
        caller = await ask(streets[0], form)
        await rig.until(lambda: len(backend.seen) == 1)
        got = b""
        for number in range(1, len(form.events)):
            await stage.let(number)
            await caller.events(1)
            got += caller.body
            caller = await ask(streets[number % 2], form, got)
            await caller.until(lambda caller=caller: caller.head)
        await stage.let()
        got += (await caller.end()).body
        assert is_right(form, got)
        late = b"".join(got.partition(b"\n\n")[:2])
        for street in streets:
            assert late + (await (await ask(street, form, late)).end()).body == got
        assert len(backend.seen) == 1
    finally:
        for street in streets:
            street.close()
