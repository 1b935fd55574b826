"""Fixtures of the suites that ask a running proxy."""

import pytest

from cacheproxy.wiring import house
from tests import rig


@pytest.fixture
def clock(monkeypatch) -> rig.Clock:
    """The wall clock of every proxy started after it; ask for it before `proxy` and `client`."""
    moved = rig.Clock()
    monkeypatch.setattr(house, "SystemClock", lambda: moved)
    return moved
