"""A log of questions that were nearly answered by meaning, for whoever looks for the right threshold.

One JSON line each: `time` (seconds since the epoch), `similarity`, `threshold`, `reason`, `partition`, `asked` and
`stored`: the questions, or what stands for them (`hashed`): hashes that only this proxy's secret can make. A line of a
served answer that was sampled has `same`: what came of it.
"""

from collections.abc import Callable

import orjson

from cacheproxy.core import key
from cacheproxy.core.agreement import Agreement
from cacheproxy.engine.asked import Asked
from cacheproxy.ports import Clock

BELOW = 0.05
"""So far below the threshold candidates are still noted."""
LONGEST = 4_096
"""Characters of a question that are written."""
BELOW_THRESHOLD, UNLIKE, VERIFIER, PENDING, PADDED, SAMPLED = (
    "below_threshold", "unlike", "verifier", "pending", "padded", "sampled",
)  # fmt: skip
"""Reasons. That of a guard is ``unlike:<guard>``."""

Write = Callable[[bytes], bool]
"""Takes a line without waiting; False if it is dropped."""


class NearMisses:
    """`texts`: questions are written as they are."""

    def __init__(self, write: Write, clock: Clock, secret: bytes, *, texts: bool) -> None:
        self._write = write
        self._clock = clock
        self._secret = secret
        self._texts = texts

    def __repr__(self) -> str:
        return f"<NearMisses {'texts' if self._texts else 'hashed'}>"

    def rekey(self, secret: bytes) -> None:
        """From now on hashes are made with `secret`."""
        self._secret = secret

    def note(self, asked: Asked, stored: str, similarity: float | None, threshold: float, reason: str) -> None:
        """A candidate was not served. What is too far is not noted."""
        if similarity is not None and similarity >= threshold - BELOW:
            self._line(asked, stored, similarity, {"threshold": round(threshold, 4), "reason": reason})

    def sampled(self, asked: Asked, stored: str, similarity: float, verdict: Agreement) -> None:
        """A candidate was served, and the backend's own answer compared with it."""
        if verdict is not Agreement.UNKNOWN:
            self._line(asked, stored, similarity, {"reason": SAMPLED, "same": verdict is Agreement.AGREE})

    def _line(self, asked: Asked, stored: str, similarity: float, more: dict[str, object]) -> None:
        line = {
            "time": round(self._clock.now(), 3),
            "similarity": round(similarity, 4),
            **more,
            "asked": self._written(asked.text),
            "stored": self._written(stored),
            "hashed": not self._texts,
            "partition": asked.partition.hex()[:16],
        }
        self._write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def _written(self, text: str) -> str:
        if self._texts:
            return text[:LONGEST].encode("utf-8", "replace").decode()
        return key.hint(self._secret, "near miss", text.encode("utf-8", "surrogatepass"))
