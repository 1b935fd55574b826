"""Answers rendered in another form than they were recorded in, remembered while they are asked for."""

from cachetools import LRUCache

from cacheproxy.core import replay
from cacheproxy.core.model import ENTRY_OVERHEAD, Answer, Entry

REMEMBERED_BYTES = 16 * 2**20


class Replays:
    """Renders entries; keeps at most `capacity` bytes of rendered answers."""

    def __init__(self, capacity: int = REMEMBERED_BYTES) -> None:
        self._known: LRUCache[tuple[bytes, float, int, bool, bool], Answer] = LRUCache(
            capacity, getsizeof=lambda answer: len(answer.body) + ENTRY_OVERHEAD
        )

    def render(self, entry: Entry, *, stream: bool, wants_usage: bool) -> Answer:
        """The answer of `entry` as the request wants it."""
        if replay.is_ready(entry.answer, entry.endpoint, stream=stream, wants_usage=wants_usage):
            return entry.answer
        # Two answers to one request may be stored at one moment of the clock.
        name = (entry.key, entry.stored_at, hash(entry.answer.body), stream, wants_usage)
        answer: Answer | None = self._known.get(name)
        if answer is None:
            answer = replay.render(entry.answer, entry.endpoint, stream=stream, wants_usage=wants_usage)
            if len(answer.body) + ENTRY_OVERHEAD <= self._known.maxsize // 4:
                self._known[name] = answer
        return answer
