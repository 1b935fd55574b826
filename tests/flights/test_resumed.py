"""Going on after a break: the parts of a stream make the whole, nothing comes twice, and the backend is asked once."""

import re

import pytest

from tests import rig
from tests.flights.stage import EVENTS, WHOLE

IDS = {"X-Cache-Event-Ids": "on"}


def ids(body: bytes) -> list[str]:
    return [found.decode() for found in re.findall(rb"^id: (\S+)$", body, re.MULTILINE)]


def bare(body: bytes) -> bytes:
    return re.sub(rb"^id: \S+\n", b"", body, flags=re.MULTILINE)


async def rest_after(field, last: str, **fields) -> bytes:
    caller = await (await field.street.stream(headers={"Last-Event-ID": last}, **fields)).end()
    assert caller.whole
    return caller.body


async def test_cut_at_every_event_while_it_runs(field, stage, backend):
    """Each connection breaks after one event more, and the next goes on; nobody else keeps the answer running."""
    caller = await field.street.stream(headers=IDS)
    await rig.until(lambda: backend.calls == 1)
    got = b""
    for number in range(1, len(EVENTS)):
        await stage.let(number)
        await caller.events(1)
        got += caller.body
        caller.leave()
        await field.waiting(0)
        caller = await field.street.stream(headers={"Last-Event-ID": ids(got)[-1]})
        await field.waiting(1)
    await stage.let()
    got += (await caller.end()).body
    assert bare(got) == WHOLE
    assert len(set(ids(got))) == len(ids(got)) == len(EVENTS)
    assert backend.calls == 1


@pytest.mark.parametrize("window", ["60s", "0s"])
async def test_cut_at_every_event_after_its_end(field_of, stage, backend, window):
    """From what is held for those who were cut off, or, where nothing is held, from what was stored."""
    field = await field_of(flight__resume_window=window)
    await stage.let()
    whole = (await (await field.street.stream(headers=IDS)).end()).body
    assert bare(whole) == WHOLE
    events = whole.split(b"\n\n")
    for number, last in enumerate(ids(whole), 1):
        assert await rest_after(field, last) == b"\n\n".join(events[number:])
    assert backend.calls == 1


async def test_while_the_break_has_not_been_noticed(field, stage, backend):
    first = await field.street.stream(headers=IDS)
    await rig.until(lambda: backend.calls == 1)
    await stage.let(6)
    seen = b"".join(await first.events(6))
    second = await field.street.stream(headers={"Last-Event-ID": ids(seen)[3]})
    await stage.let()
    whole = (await first.end()).body
    assert (await second.end()).body == b"\n\n".join(whole.split(b"\n\n")[4:])
    assert backend.calls == 1


async def test_nobody_goes_on_with_what_is_not_his(field, stage, backend):
    """Another credential, another request, an id that was made up: each begins anew, and sees nothing of it."""
    await stage.let()
    whole = (await (await field.street.stream(headers=IDS)).end()).body
    last = ids(whole)[5]
    identity = last.partition("-")[0]
    for fields, told in (({"key": "B"}, last), ({"seed": 7}, last), ({"seed": 8}, f"{'0' * 32}-5")):
        before = backend.calls
        body = await rest_after(field, told, **fields)
        assert bare(body) == WHOLE
        assert backend.calls == before + 1
        assert identity not in {found.partition("-")[0] for found in ids(body)}


async def test_a_purge_ends_what_could_be_gone_on_with(field, stage, backend, session):
    await stage.let()
    whole = (await (await field.street.stream(headers=IDS)).end()).body
    order = {"selector": {"all": True}, "confirm": "purge all"}
    async with session.post(field.proxy.admin + "/admin/purge", json=order) as answer:
        assert answer.status == 200
    body = await rest_after(field, ids(whole)[5])
    assert bare(body) == WHOLE
    assert backend.calls == 2


async def test_without_being_asked_for_there_are_no_ids(field, stage):
    await stage.let()
    assert ids((await (await field.street.stream()).end()).body) == []


async def test_what_is_neither_on_nor_off_is_refused(field):
    caller = await (await field.street.stream(headers={"X-Cache-Event-Ids": "perhaps"})).end()
    assert caller.status == 400
