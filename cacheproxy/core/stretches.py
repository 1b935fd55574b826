"""How far two texts are equal, and where they are equal again. Pure and linear: stretches are compared as wholes."""

import re
from collections.abc import Callable

STEP = 4096
ANCHOR = 32
"""Characters that have to be equal for two texts to be taken up again there."""
SHORTEST = 12
REACH = 8192
"""How far behind a place they are looked for."""
LONGEST = 80
"""Characters that a token has at most."""
_BREAKS = 6
_LINES = 8
_ENDS = frozenset(" \t\r\n\"'`<>()[]{},;")
_BREAK = re.compile(r"[ \t\r\n\"'`<>()\[\]{},;]")


def common(a: str, x: int, b: str, y: int) -> int:
    """How many characters are equal from `x` in `a` and from `y` in `b` on."""
    length = 0
    most = min(len(a) - x, len(b) - y)
    while length < most and a.startswith(b[y + length : y + min(length + STEP, most)], x + length):
        length = min(length + STEP, most)
    return _bisected(length, min(length + STEP, most), lambda n: a[x + length : x + n] == b[y + length : y + n])


def common_end(a: str, x: int, b: str, y: int) -> int:
    """How many characters are equal at the ends of `a` from `x` on and of `b` from `y` on."""
    length = 0
    most = min(len(a) - x, len(b) - y)
    p, q = len(a), len(b)

    def equal(n: int) -> bool:
        return a[p - n : p - length] == b[q - n : q - length]

    while length < most and equal(further := min(length + STEP, most)):
        length = further
    return _bisected(length, min(length + STEP, most), equal)


def equal_at_ends(a: str, b: str) -> int:
    """How many characters are equal at the beginnings and at the ends of both."""
    if a == b:
        return len(a)
    beginning = common(a, 0, b, 0)
    return beginning + common_end(a, beginning, b, beginning)


def size(text: str, start: int, end: int) -> int:
    """Bytes of this part in UTF-8."""
    return end - start if text.isascii() else len(text[start:end].encode("utf-8", "surrogatepass"))


def token(text: str, at: int) -> int:
    """How far before `at` the token begins that it is in."""
    back = 0
    while back < min(at, LONGEST) and text[at - back - 1] not in _ENDS:
        back += 1
    return back


def after_gap(a: str, x: int, b: str, y: int) -> tuple[int, int]:
    """Where both texts go on alike that differ from `x` and `y` on: behind something that only one of them has, behind
    a few words, behind some lines, or where their common end begins."""
    inserted, left_out = _found(a, x, b, y), _found(b, y, a, x)
    if inserted >= 0 or left_out >= 0:
        return (x, inserted) if inserted >= 0 else (left_out, y)
    cuts = [found.start() for found, _ in zip(_BREAK.finditer(a, x, x + REACH), range(_BREAKS), strict=False)]
    line = x
    for _ in range(_LINES):
        line = a.find("\n", line, x + REACH) + 1
        if not line:
            break
        cuts.append(line)
    for cut in cuts:
        if (found := _found(a, cut, b, y)) >= 0:
            return cut, found
    end = common_end(a, x, b, y)
    return len(a) - end, len(b) - end


def _found(a: str, x: int, b: str, y: int) -> int:
    """Where in `b`, behind `y`, what begins at `x` in `a` stands; -1 if that is too little or not near."""
    return b.find(a[x : x + ANCHOR], y, y + REACH) if len(a) - x >= SHORTEST else -1


def _bisected(low: int, high: int, equal: Callable[[int], bool]) -> int:
    """The largest number up to `high` that `equal` is true of, which it is of `low` and of everything below one."""
    while low < high:
        middle = (low + high + 1) // 2
        if equal(middle):
            low = middle
        else:
            high = middle - 1
    return low
