"""A whole in the pieces in which a stream tells it."""

import re
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_MOST = 256
_WORD = re.compile(r"\s*\S{1,12}|\s+\Z")


def split_text(text: str) -> list[str]:
    """The text in at most 256 pieces, at words where it has them; joined they are the text."""
    return ["".join(words) for words in grouped(_WORD.findall(text))]


def grouped(things: Sequence[T]) -> list[Sequence[T]]:
    """The things, in order, in at most 256 groups."""
    step = -(-len(things) // _MOST) or 1
    return [things[i : i + step] for i in range(0, len(things), step)]
