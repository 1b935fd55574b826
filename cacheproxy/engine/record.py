"""A recording under way: the answer's bytes as they pass, unpacked, bounded, and given up without a sound.

Nothing here can stop or slow the answer; a recording that cannot go on only remembers why.
"""

from dataclasses import replace
from time import monotonic

from cacheproxy.core.coding import BadCoding, Decoder
from cacheproxy.core.model import Answer, Ask
from cacheproxy.core.outcome import Reason
from cacheproxy.core.recording import Recorder, recorder

LONGEST_PAUSE = 65_535
"""Milliseconds; a longer pause between two events is noted as this."""


class Budget:
    """Bytes that all recordings under way may hold together."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0

    def __repr__(self) -> str:
        return f"<Budget {self.held}/{self.limit}>"


class Recording:
    """Records the answer to `ask`, at most `largest` bytes of it, drawing on `budget`."""

    def __init__(  # noqa: PLR0913 - what is recorded, and within which bounds
        self, ask: Ask, content_type: str, decoder: Decoder | None, largest: int, budget: Budget, status: int = 200
    ) -> None:
        self._recorder: Recorder | None = recorder(ask, content_type, status)
        self._decoder = decoder
        self._largest = largest
        self._budget = budget
        self._held = 0
        self._trouble: Reason | None = None
        self._pace = bytearray()
        self._last = monotonic()

    def __repr__(self) -> str:
        return f"<Recording {self._held} bytes {self._trouble.word if self._trouble else 'going on'}>"

    @property
    def trouble(self) -> Reason | None:
        """Why this recording will not be kept, as far as is known."""
        return self._trouble

    @property
    def ended(self) -> bool:
        """The answer itself is over (a stream's terminal event was seen); its framing may not be."""
        return self._recorder is not None and self._recorder.ended

    def feed(self, data: bytes) -> None:
        """Take the next bytes as they came from the backend."""
        if self._recorder is None:
            return
        if self._decoder is not None:
            try:
                data = self._decoder.feed(data)
            except BadCoding:
                self.give_up(Reason.CONTENT_ENCODING)
                return
        self._held += len(data)
        self._budget.held += len(data)
        if self._held > self._largest:
            self.give_up(Reason.TOO_LARGE)
        elif self._budget.held > self._budget.limit:
            self.give_up(Reason.RECORDING_BUDGET)
        else:
            self._note_pace(self._recorder, data)

    def _note_pace(self, recorder: Recorder, data: bytes) -> None:
        """Feed, and note how long the first of the events that came had been waited for."""
        before = recorder.events
        recorder.feed(data)
        if recorder.events > before:
            now = monotonic()
            pause = min(round((now - self._last) * 1000), LONGEST_PAUSE)
            self._last = now
            self._pace += pause.to_bytes(2, "big") + bytes(2 * (recorder.events - before - 1))

    def give_up(self, reason: Reason) -> None:
        """Stop recording and let go of what is held. The first reason given is the one that stays."""
        self._trouble = self._trouble or reason
        self._release()

    def _release(self) -> None:
        self._recorder = None
        self._budget.held -= self._held
        self._held = 0

    def conclude(self) -> Answer | Reason:
        """What was recorded, now that the framing said the body is whole. Lets go of everything held."""
        if self._recorder is None:
            return self._trouble or Reason.INCOMPLETE
        if self._decoder is not None and not self._decoder.whole:
            self.give_up(Reason.INCOMPLETE)
            return Reason.INCOMPLETE
        result = self._recorder.finish()
        self._release()
        if isinstance(result, Answer) and self._pace:
            result = replace(result, pace=bytes(self._pace))
        return result
