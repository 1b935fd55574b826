"""What the suites of limits have in common: a clock to move on, a proxy with limits, and what its answers say."""

import time

import pytest

from cacheproxy.wiring import house
from tests import rig
from tests.rig import Answer, Client


class Clock(rig.Clock):
    """Time that a test moves on."""

    moved = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.moved


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(house, "SystemClock", lambda: made)
    return made


@pytest.fixture
def ask(start, session):
    """Starts a proxy with these settings and gives its client."""

    async def begin(**values) -> Client:
        proxy = await start(**values)
        client = Client(proxy.base, session)
        client.house = proxy.house
        return client

    return begin


def told(answer: Answer) -> dict[str, str]:
    """What the answer says of limits; no name twice."""
    names = [name.lower() for name, _ in answer.headers if name.lower().startswith("x-ratelimit")]
    assert len(names) == len(set(names))
    return {name.removeprefix("x-ratelimit-"): answer.get(name) for name in names}


async def left(client: Client, key: str = "A") -> int:
    """Tokens that are left of the limit, by asking once more."""
    answer = await client.chat(seed=time.monotonic_ns(), key=key)
    assert answer.status == 200
    return int(told(answer)["remaining-tokens"])
