"""The same question asked a thousand times while its first answer is being generated: one generation, and each caller
is given all of it, in order, whatever the others do."""

import random
from itertools import pairwise

from tests import rig
from tests.flights.stage import EVENTS, WHOLE

MANY = 1000
CUT = 30
"""Events after which a backend breaks off."""


async def test_a_thousand_at_once_cost_one_call(field, stage, backend):
    """B57, B18: before the head, after it and in the middle of the body they join; every byte is the same."""
    street = field.street
    first = await street.stream()
    await rig.until(lambda: stage.begun == 1)
    callers = [first, *await street.crowd(MANY // 2, stream=True)]
    await field.waiting(len(callers))
    await stage.let(1)
    callers += await street.crowd(MANY // 4, stream=True)
    await field.waiting(len(callers))
    await stage.let(20)
    callers += await street.crowd(MANY - len(callers), stream=True)
    await field.waiting(MANY)
    await stage.let()
    for caller in callers:
        await caller.end()
    assert {caller.body for caller in callers} == {WHOLE}
    assert all(caller.whole and caller.status == 200 for caller in callers)
    assert [caller.field("x-cache-coalesced") for caller in callers] == [None] + ["1"] * (MANY - 1)
    assert {caller.field("x-cache") for caller in callers} == {"MISS"}
    assert first.field("cache-status") == "cacheproxy; fwd=miss; stored"
    assert "collapsed" in callers[1].field("cache-status")
    assert backend.calls == 1
    later = await (await street.stream()).end()
    assert later.field("x-cache") == "HIT"
    assert backend.calls == 1
    await field.empty()


async def test_the_first_leaves_at_once_and_half_of_them_at_random(field, stage, backend):
    """B57: who stays is given everything; the backend is called once, and its answer is stored."""
    dice, street = random.Random(20), field.street
    first = await street.stream()
    await rig.until(lambda: stage.begun == 1)
    callers = await street.crowd(MANY // 2, stream=True)
    await field.waiting(len(callers) + 1)
    first.leave()
    leaving = dice.sample(callers, len(callers) // 2)
    staying = [caller for caller in callers if caller not in set(leaving)]
    marks = sorted(dice.sample(range(len(leaving)), len(EVENTS)))
    for event, (start, end) in enumerate(pairwise([0, *marks])):
        for caller in leaving[start:end]:
            caller.leave()
        await stage.let(event + 1)
    for caller in leaving:
        caller.leave()
    await stage.let()
    for caller in staying:
        assert (await caller.end()).body == WHOLE
    assert all(caller.whole for caller in staying)
    assert backend.calls == 1
    await field.empty()
    assert field.stored == 1


async def test_a_backend_that_cuts_is_told_to_all_of_them(field, stage, backend):
    """B15, B27: none has a clean end, nothing is stored, nobody's call is repeated, the next request is a new one."""
    street, stage.cuts_at = field.street, CUT
    first = await street.stream()
    await rig.until(lambda: backend.calls == 1)
    callers = [first, *await street.crowd(MANY // 2, stream=True)]
    await field.waiting(len(callers))
    await stage.let(CUT // 2)
    callers += await street.crowd(MANY - len(callers), stream=True)
    await field.waiting(MANY)
    await stage.let()
    for caller in callers:
        await caller.end()
    assert {caller.body for caller in callers} == {b"".join(EVENTS[:CUT])}
    assert all(caller.over and not caller.whole for caller in callers)
    assert backend.calls == 1
    await field.empty()
    assert field.stored == 0
    stage.cuts_at = None
    again = await (await street.stream()).end()
    assert (again.body, again.whole, again.field("x-cache")) == (WHOLE, True, "MISS")
    assert backend.calls == 2
