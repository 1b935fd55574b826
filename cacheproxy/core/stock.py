"""What stores say of what they keep. Data."""

from dataclasses import dataclass
from enum import Enum

from cacheproxy.core.model import Entry


class Kept(Enum):
    """What became of an entry that was put."""

    YES = "yes"
    OUTRUN = "outrun"  # by a removal, which `Removals` knows by now; it may or may not mean this entry
    TOO_LARGE = "too_large"  # for this store; an older entry of the key is gone
    TROUBLE = "trouble"  # it is not certain that the store took it


class BadCursor(ValueError):
    """No place of this store to go on from."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry in a list. `bytes`: what it takes up in its store."""

    entry: Entry
    bytes: int


@dataclass(frozen=True, slots=True)
class Page:
    """Some of a list, in no order. `cursor`: where it goes on; empty at its end."""

    rows: list[Listed]
    cursor: str
