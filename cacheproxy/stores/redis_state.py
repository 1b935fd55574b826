"""What the scripts tell of the removals that replicas share, read. Whatever is not of their form is refused."""

from typing import Any, NamedTuple

from cacheproxy.core import notice
from cacheproxy.core.past import Ordered, Past
from cacheproxy.core.removal import Felled, Removal, Selector

EVERYTHING = Selector(everything=True)
DRIFT = 0.001
"""The most that the clocks of two machines run apart, as a fraction."""


class Head(NamedTuple):
    """What a head tells: how far removals were counted, and which server says so."""

    generation: bytes
    number: int
    server: bytes


class State(NamedTuple):
    """`lines`: number -> how many seconds ago a removal was ordered at least, by the server's clock alone, and its
    notice; `open`: those whose entries may still be there, by number; `replicas`: how many the server has, 0 where it
    was not asked."""

    head: Head
    secret: Any
    lines: dict[int, tuple[float, bytes]]
    open: dict[int, Felled]
    replicas: int


def read_head(text: bytes) -> Head:
    """Raises `ValueError` if it is none of ours."""
    generation, count, server = text.split(b" ")
    return Head(bytes.fromhex(generation.decode()), int(count), server)


def readable(text: bytes | None) -> Head | None:
    """The same; None if there is none."""
    try:
        return None if text is None else read_head(text)
    except ValueError:
        return None


def read_state(reply: Any) -> State:
    """What ``CATCH_UP`` and ``ANNOUNCE`` told. Raises `ValueError`, `TypeError`, `LookupError`."""
    told = [line.split(b" ", 3) for line in reply[4] if b" " in line]
    head = read_head(reply[0])
    found = {int(number): _felled(int(number), line, head.generation) for number, _, _, line in told}
    return State(head, reply[1], _lines(reply[2], int(reply[3])), found, int(reply[5]) if len(reply) > 5 else 0)


def read_past(lines: list[bytes]) -> Past:
    """What a whole log tells. Raises `ValueError`, `TypeError`."""
    if not lines:
        return Past(float("inf"))
    told = [line.split(b" ", 2) for line in lines]
    known = [notice.decode(line) for number, _, line in told if int(number)]
    if None in known:
        return Past(float("inf"))  # what one of them means is not known
    ordered = (Ordered(one.now, one.selector, one.removal) for one in known if one is not None)
    return Past(int(told[0][1]) / 1000, tuple(ordered))


def _felled(number: int, line: bytes, era: bytes) -> Felled:
    """A removal of everything if it says what is not known here."""
    told = notice.decode(line)
    if told is None:
        return Felled(number, EVERYTHING, Removal.HARD, 0.0, era)
    return Felled(number, told.selector, told.removal, told.now, era)


def _lines(log: list[bytes], server_ms: int) -> dict[int, tuple[float, bytes]]:
    found = {}
    for line in log:
        number, ordered, told = line.split(b" ", 2)
        # Both times are cut to milliseconds, and no two clocks run alike.
        found[int(number)] = (max(0.0, (server_ms - int(ordered) - 1) / 1000 * (1 - DRIFT)), told)
    return found
