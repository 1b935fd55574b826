"""When the last reader has left, however it leaves, the backend is stopped within a second."""

import pytest

from tests import rig
from tests.flights.callers import Caller

WAYS = {"closed": Caller.close, "reset": Caller.leave}
SOON = 1.0
"""Seconds."""


@pytest.mark.parametrize("seen", [0, 3], ids=["before its head", "in the middle"])
@pytest.mark.parametrize("way", WAYS)
async def test_the_backend_is_stopped_within_a_second(field, stage, backend, way, seen):
    """B61: some leave before, and as long as one is there it goes on."""
    callers = await field.street.crowd(5, stream=True)
    await rig.until(lambda: backend.calls == 1)
    await field.waiting(5)
    await stage.let(seen)
    for caller in callers:
        await caller.events(seen)
    for caller in callers[:-1]:
        WAYS[way](caller)
    await field.waiting(1)
    assert (stage.left, field.flights.running) == (0, 1)
    WAYS[way](callers[-1])
    await rig.until(lambda: stage.left == 1, SOON, "the end of the call")
    await field.empty()
    assert (backend.calls, field.stored) == (1, 0)
