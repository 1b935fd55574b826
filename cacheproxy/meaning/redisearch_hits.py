"""What a search server answered, made into hits. A row counts only if it proves itself: it has the wanted partition, it
has not expired, its name is that of the key that it states, its distance is one, and it has its question."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cacheproxy.core.key import KEY_BYTES, entry_id
from cacheproxy.errors import Trouble
from cacheproxy.meaning.redisearch_schema import DISTANCE, EXPIRY, KEY, PARTITION, TEXT, VECTOR
from cacheproxy.meaning.vectors import Floats, unit

_ROUNDED = 0.01
"""A time comes back with so many seconds of error."""

_INEXACT = 0.01
"""How far beyond 0 and 2 a distance may lie; farther, it is not the cosine's."""

Document = Mapping[str, Any]
"""Fields of a row, and its name as `id`."""


class Hits:
    """Takes documents of one search, for `vector` (of length 1) within a partition (hex digits) at `now`."""

    def __init__(self, partition: str, vector: Floats, now: float) -> None:
        self.partition, self.vector, self.now = partition, vector, now
        self.similarities: dict[bytes, float] = {}
        self.texts: dict[bytes, str] = {}

    def take(self, documents: Iterable[Document]) -> list[bytes]:
        """Keys of those that prove themselves, in the order given; their similarity and text are known from now on."""
        found = []
        for document in documents:
            key = self._proven(document)
            similarity = None if key is None else self._similarity(document)
            text = _text(document.get(TEXT))
            if key is not None and similarity is not None and text is not None:
                found.append(key)
                self.similarities.setdefault(key, similarity)
                self.texts.setdefault(key, text)
        return found

    def _proven(self, document: Document) -> bytes | None:
        key, name = document.get(KEY), document.get("id")
        if not isinstance(key, bytes) or len(key) != KEY_BYTES or not isinstance(name, str):
            return None
        if document.get(PARTITION) != self.partition or name.rpartition(":")[2] != entry_id(key):
            return None
        expires_at = _number(document.get(EXPIRY))
        return key if expires_at is not None and expires_at > self.now - _ROUNDED else None

    def _similarity(self, document: Document) -> float | None:
        """By the distance that the server gives, else from the row's own vector."""
        if DISTANCE in document:
            distance = _number(document[DISTANCE])
            if distance is None or not -_INEXACT <= distance <= 2 + _INEXACT:
                return None
            return max(-1.0, min(1.0, 1 - distance))
        stored = document.get(VECTOR)
        if not isinstance(stored, bytes) or len(stored) != 4 * len(self.vector):
            return None
        try:
            direction = unit(np.frombuffer(stored, np.float32), len(self.vector))
        except Trouble:
            return None
        return max(-1.0, min(1.0, float(np.dot(direction, self.vector))))


def _text(value: object) -> str | None:
    try:
        return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else None
    except UnicodeDecodeError:
        return None


def _number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
