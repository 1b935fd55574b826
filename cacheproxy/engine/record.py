"""A recording under way: the answer's bytes as they pass, unpacked, bounded, and given up without a sound.

Nothing here can stop or slow the answer; a recording that cannot go on only remembers why.
"""

from cacheproxy.core.coding import BadCoding, Decoder
from cacheproxy.core.model import Answer, Ask
from cacheproxy.core.outcome import Reason
from cacheproxy.core.recording import Recorder, recorder


class Budget:
    """Bytes that all recordings under way may hold together."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0

    def __repr__(self) -> str:
        return f"<Budget {self.held}/{self.limit}>"


class Recording:
    """Records the answer to `ask`, at most `largest` bytes of it, drawing on `budget`."""

    def __init__(self, ask: Ask, content_type: str, decoder: Decoder | None, largest: int, budget: Budget) -> None:
        self._recorder: Recorder | None = recorder(ask, content_type)
        self._decoder = decoder
        self._largest = largest
        self._budget = budget
        self._held = 0
        self._trouble: Reason | None = None

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
            self._recorder.feed(data)

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
        return result
