"""Who does what to whom, and from where to where: the order of the words that two texts share. Pure.

A phrase that moved as a whole changes nothing ("in 2020 did …"); two things that changed places do.
"""

from bisect import bisect_left
from itertools import pairwise

from cacheproxy.core.guards.order import Order

_TWO = 2
_DO = frozenset({"do", "does", "did"})
_WORDS_OF_PERSONS = _DO | {"i", "me", "am", "is"}
_SHORT = 4
"""Shared words up to which a passive sentence is taken to be read rightly."""
_CLASHES = frozenset({frozenset({"from", "to"}), frozenset({"subject", "object"}), frozenset({"than", ""})})
"""Roles of one and the same thing that mean another question."""


_MEANS = ({"with", ""}, {"by", ""})


def orders_differ(asked: Order, stored: Order) -> str:
    """Two words that changed places; empty if none did."""
    if asked.genders != stored.genders and set(asked.genders) == set(stored.genders) == {"m", "f"}:
        return f"{asked.genders} / {stored.genders}"
    if told := _persons_differ(asked, stored):
        return told
    symmetric = asked.symmetric and stored.symmetric
    if not symmetric and asked.bag == stored.bag and asked.ends != stored.ends and _same_signs(asked, stored):
        return " / ".join(" ".join(end) for end in sorted(asked.ends ^ stored.ends)[:2])
    if not symmetric and _numbers_moved(asked, stored):
        return f"{' '.join(asked.numbers)} / {' '.join(stored.numbers)}"
    return _words_moved(asked, stored, symmetric=symmetric)


def _same_signs(asked: Order, stored: Order) -> bool:
    """Whether both say from where, to where or before what, by the same words."""
    return bool(asked.ends) and {sign for sign, _ in asked.ends} == {sign for sign, _ in stored.ends}


def _words_moved(asked: Order, stored: Order, *, symmetric: bool) -> str:
    """Two words of substance that changed places; empty if none did."""
    theirs = {root: (place, role) for place, (root, role) in enumerate(stored.places)}
    shared = [(root, role, *theirs[root]) for root, role in asked.places if root in theirs]
    for root, role, _, other in shared:
        if frozenset({role, other}) in _CLASHES:
            return f"{role or '-'} {root} / {other or '-'} {root}"
    if len(shared) < _TWO:
        return ""
    if told := _objects_differ(asked, stored):
        return told
    if symmetric:
        return ""
    line = [place for _, _, place, _ in shared]
    if line == sorted(line):
        return ""
    together = asked.joined | stored.joined
    if len(line) == _TWO and _is_bare_exchange(asked, stored):
        return " / ".join(root for root, _, _, _ in shared)
    back = sorted(
        ((root, other, place, role) for place, (root, role, _, other) in enumerate(shared)),
        key=lambda one: theirs[one[0]][0],
    )
    exchanged = _exchanged(shared) or _exchanged(back)
    if exchanged:
        return exchanged
    line = [place for root, _, place, _ in shared if root not in together]
    least = 2 if asked.passive != stored.passive and len(shared) <= _SHORT else 3
    if asked.suffers != stored.suffers:
        least = _SHORT
    return "order" if _falls(line) >= least else ""


def _persons_differ(asked: Order, stored: Order) -> str:
    """Who is asked about, if it is the one in one text and the other in the other; empty if not."""
    ours, theirs = asked.persons, stored.persons
    if {ours, theirs} == {"M", "U"}:
        return "my / your"
    if {ours, theirs} == {"i", "m"} and asked.bag ^ stored.bag <= _WORDS_OF_PERSONS:
        return "I / me"
    if len(ours) == len(theirs) == _TWO and "u" in ours and "u" in theirs and ours.index("u") != theirs.index("u"):
        return f"{ours} / {theirs}"
    return ""


def _numbers_moved(asked: Order, stored: Order) -> bool:
    """Whether two texts have the same numbers in another order, and not because a clause has moved."""
    ours, theirs = asked.numbers, stored.numbers
    return ours != theirs and sorted(ours) == sorted(theirs) and not (asked.clauses or stored.clauses)


def _objects_differ(asked: Order, stored: Order) -> str:
    """What is the object of a verb in one text and its means in the other: "top up my card", "top up with my card"."""
    if len(asked.places) != len(stored.places) or len(asked.places) > _TWO:
        return ""
    if not (asked.plain and stored.plain):
        return ""
    for (one, role), (other, role2) in zip(asked.places[1:], stored.places[1:], strict=True):
        if one == other and {role, role2} in _MEANS:
            return f"{role or '-'} {one} / {role2 or '-'} {one}"
    return ""


def _is_bare_exchange(asked: Order, stored: Order) -> bool:
    """Whether two texts have but two words of substance, and differ in their order alone: "is A a B?"."""
    both = (asked, stored)
    if any(len(one.places) != _TWO or one.joined or one.suffers for one in both):
        return False
    if any(role for one in both for _, role in one.places):
        return False
    done = asked.bag ^ stored.bag
    return done <= _DO and bool(done or not (asked.attributes or stored.attributes))


def _exchanged(shared: list[tuple[str, str, int, str]]) -> str:
    """Neighbours that changed places and roles: "Celsius to Fahrenheit"."""
    for (one, role, place, theirs), (other, role2, place2, theirs2) in pairwise(shared):
        if place > place2 and role == theirs2 and role2 == theirs and role != role2:
            return f"{one} / {other}"
    return ""


def _falls(line: list[int]) -> int:
    """The length of the longest falling subsequence."""
    tails: list[int] = []
    for place in line:
        at = bisect_left(tails, -place)
        tails[at : at + 1] = [-place]
    return len(tails)
