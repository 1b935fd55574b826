"""What becomes of those who wait, row by row of the table in core/following.py; and of who must not wait at all."""

import asyncio
import json

import pytest

from tests import rig
from tests.fakes.backend import Exchange, completion
from tests.flights.callers import split
from tests.flights.stage import WHOLE, WORDS, Stage, telling


class Held:
    """A script that answers JSON requests with `answers` in turn, the last one again and again, once it is let."""

    def __init__(self, *answers) -> None:
        self.answers = list(answers)
        self.go = asyncio.Event()
        self.calls = 0

    async def __call__(self, exchange: Exchange) -> None:
        answer = self.answers[min(self.calls, len(self.answers) - 1)]
        self.calls += 1
        await self.go.wait()
        await answer(exchange)


def gives(document: dict, status: str = "200 OK", extra: bytes = b""):
    async def answer(exchange: Exchange) -> None:
        await exchange.json(document, status, extra)

    return answer


async def cuts(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    exchange.cut()


ERROR = {"error": {"message": "no", "type": "x", "param": None, "code": None}}


async def asked_together(field, script: Held, count: int = 6, **fields) -> list:
    """`count` who ask while the first call is under way."""
    first = await field.street.call(**fields)
    await rig.until(lambda: script.calls == 1)
    others = await field.street.crowd(count - 1, **fields)
    await field.waiting(count)
    script.go.set()
    return [await caller.end() for caller in (first, *others)]


async def test_a_whole_answer_is_given_to_all(field, backend):
    backend.script = script = Held(gives(completion("Once.")))
    callers = await asked_together(field, script)
    assert {caller.body for caller in callers} == {callers[0].body}
    assert [caller.field("x-cache-coalesced") for caller in callers] == [None] + ["1"] * 5
    assert (script.calls, field.stored) == (1, 1)
    await field.empty()


@pytest.mark.parametrize("failure", [gives(ERROR, "503 Service Unavailable"), gives(ERROR, "429 Too Many"), cuts])
async def test_one_failure_costs_one_caller_and_one_more_call(field, backend, failure):
    backend.script = script = Held(failure, gives(completion("Again.")))
    callers = await asked_together(field, script)
    assert callers[0].status in (503, 429, 502)
    assert {caller.status for caller in callers[1:]} == {200}
    assert script.calls == 2
    await field.empty()


async def test_the_second_failure_is_told_to_all_and_no_storm_follows(field, backend):
    """B57: an error is not retried once for each of them."""
    backend.script = script = Held(gives(ERROR, "500 Internal Server Error"))
    callers = await asked_together(field, script, 12)
    assert {caller.status for caller in callers} == {500}
    assert script.calls == 2
    await field.empty()


async def test_a_status_that_is_about_the_request_is_asked_for_by_each(field, backend):
    backend.script = script = Held(gives(ERROR, "400 Bad Request"))
    callers = await asked_together(field, script)
    assert {caller.status for caller in callers} == {400}
    assert script.calls == 6
    await field.empty()


@pytest.mark.parametrize("extra", [b"Cache-Control: no-store\r\n", b""])
async def test_what_must_not_be_shared_is_asked_for_by_each_and_remembered(field, backend, extra):
    """Told by the head, or only by the end: a text that was cut by its limit."""
    document = completion("Cut")
    document["choices"][0]["finish_reason"] = "stop" if extra else "length"
    backend.script = script = Held(gives(document, extra=extra))
    callers = await asked_together(field, script)
    assert script.calls == 6
    assert {caller.field("x-cache-coalesced") for caller in callers} == {None}
    script.go.clear()
    later = [await field.street.call() for _ in range(3)]
    await rig.until(lambda: script.calls == 9)  # nobody waits for another
    script.go.set()
    for caller in later:
        assert (await caller.end()).status == 200
    await field.empty()


async def test_json_and_streams_are_one_generation(field, stage, backend):
    """In both directions: who wants the other form reads what was stored."""
    first = await field.street.stream()
    await rig.until(lambda: backend.calls == 1)
    other = await field.street.call()
    await field.waiting(2)
    await stage.let()
    assert (await first.end()).body == WHOLE
    assert json.loads((await other.end()).body)["choices"][0]["message"]["content"] == "".join(WORDS)
    assert backend.calls == 1
    backend.script = script = Held(gives(completion("As JSON.")))
    first = await field.street.call(seed=1)
    await rig.until(lambda: script.calls == 1)
    other = await field.street.stream(seed=1)
    await field.waiting(2)
    script.go.set()
    assert json.loads((await first.end()).body)["choices"][0]["message"]["content"] == "As JSON."
    told = [json.loads(event[6:]) for event in split((await other.end()).body)[:-1]]
    assert "".join(one["choices"][0]["delta"].get("content") or "" for one in told) == "As JSON."
    assert other.field("content-type").startswith("text/event-stream")
    assert script.calls == 1
    await field.empty()


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ({}, {"key": "B"}),
        ({}, {"headers": {"Cache-Control": "no-store"}}),
        ({}, {"headers": {"Cache-Control": "no-cache"}}),
        ({}, {"headers": {"X-Cache-Namespace": "n"}}),
        ({}, {"headers": {"X-Cache-KB": "faq@2"}}),
        ({}, {"temperature": 0.5}),
    ],
)
async def test_who_asks_something_else_is_not_merged(field, stage, backend, mine, theirs):
    """B59."""
    first = await field.street.stream(**mine)
    other = await field.street.stream(**theirs)
    await rig.until(lambda: backend.calls == 2)
    await stage.let()
    for caller in (first, other):
        assert (await caller.end()).body == WHOLE
        assert caller.field("x-cache-coalesced") is None
    await field.empty()


@pytest.mark.parametrize("mode", ["shadow", "write-only", "read-only", "off"])
async def test_where_the_cache_is_not_on_nothing_is_shared(field_of, stage, backend, mode):
    field = await field_of(exact__mode=mode)
    callers = await field.street.crowd(3, stream=True)
    await rig.until(lambda: backend.calls == 3)
    await stage.let()
    assert {(await caller.end()).body for caller in callers} == {WHOLE}
    await field.empty()


async def test_a_purge_in_the_middle(field, stage, backend, session):
    """Who was there gets it to its end; nothing is stored; the next one starts a new call."""
    old = [await field.street.stream() for _ in range(3)]
    await rig.until(lambda: backend.calls == 1)
    await stage.let(5)
    for caller in old:
        await caller.events(5)
    order = {"selector": {"all": True}, "confirm": "purge all"}
    async with session.post(field.proxy.admin + "/admin/purge", json=order) as answer:
        assert answer.status == 200
    new = await field.street.stream()
    await rig.until(lambda: backend.calls == 2)
    await stage.let()
    for caller in (*old, new):
        assert (await caller.end()).body == WHOLE
    await field.empty()
    assert field.stored == 1  # the new one
    assert backend.calls == 2


async def test_when_all_have_left_the_backend_is_stopped_or_finished_as_configured(field_of, backend):
    """B57, B61."""
    for abandon, stored in (("cancel", 0), ("finish", 1)):
        backend.script = stage = Stage(telling(["a ", "b"]))
        field = await field_of(flight__abandon=abandon)
        before = backend.calls
        callers = await field.street.crowd(5, stream=True)
        await rig.until(lambda before=before: backend.calls == before + 1)
        await stage.let(2)
        for caller in callers:
            await caller.events(2)
            caller.leave()
        await field.waiting(0)
        if stored:
            await stage.let()
        else:
            await rig.until(lambda stage=stage: stage.left == 1, 5, "the end of the call")
        await field.empty()
        assert field.stored == stored
