"""Fixtures: callers on bare sockets, and a look at what is left behind."""

from collections.abc import AsyncIterator

import pytest

from tests import rig
from tests.flights.callers import Street
from tests.flights.stage import Stage


class Field:
    """A proxy, its callers, and its running answers."""

    def __init__(self, proxy: rig.InProcess, backend) -> None:
        self.proxy = proxy
        self.backend = backend
        self.street = Street(proxy.port)

    @property
    def flights(self):
        return self.proxy.house.engine.flights

    @property
    def stored(self) -> int:
        return self.proxy.house.store.census().entries

    async def waiting(self, count: int) -> None:
        """Until so many read running answers."""
        await rig.until(lambda: self.flights.waiting == count, 20, f"{count} readers")

    async def empty(self) -> None:
        """Until nothing is left: no request, no running answer, no bytes held."""
        house = self.proxy.house
        await rig.until(lambda: house.proxy.running == 0, 20, "the end of all requests")
        await rig.until(lambda: self.flights.running == 0, 20, "an empty table")
        await rig.until(lambda: house.engine.budget.held == 0, 20, "an empty memory")
        assert self.flights.waiting == 0


@pytest.fixture
async def field_of(start, backend) -> AsyncIterator:
    """Starts a proxy and looks after its callers: ``field = await field_of(flight__abandon="finish")``."""
    fields: list[Field] = []

    async def begin(**values) -> Field:
        fields.append(Field(await start(**values), backend))
        return fields[-1]

    yield begin
    for field in fields:
        field.street.close()


@pytest.fixture
async def field(field_of) -> Field:
    return await field_of()


@pytest.fixture
def stage(backend) -> Stage:
    """The backend waits for the test before each event."""
    backend.script = Stage()
    return backend.script
