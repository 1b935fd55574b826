"""What is known of one family of prompts. Of bounded size but for its last head; shows no text of a prompt other than
times, ids and nonces."""

from collections import Counter, deque
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from cachetools import LRUCache

from cacheproxy.core.blocks import Block
from cacheproxy.core.divergence import Comparison, Divergence, tokens
from cacheproxy.core.sketch import Sketch
from cacheproxy.core.volatile import SHOWN

PLACES = 16
"""Places of divergence that are told apart, the last ones seen."""
RECENT = 31
WAITS = 128
LONGEST_SHOWN = 80


@dataclass(slots=True)
class Counts:
    """What backends have said of prompts: tokens, and those of them that they had in their cache."""

    requests: int = 0
    prompt: int = 0
    cached: int = 0

    def add(self, prompt: int, cached: int) -> None:
        self.requests += 1
        self.prompt += prompt
        self.cached += cached

    def told(self) -> dict[str, Any]:
        """As plain data; the share is None as long as nothing was counted."""
        share = self.cached / self.prompt if self.prompt else None
        return {"prompt_tokens": self.prompt, "cached_tokens": self.cached, "hit_share": share}


@dataclass(slots=True)
class _Place:
    """A place where successive heads have parted `seen` times; `saved`: bytes that would have been equal."""

    last: Divergence
    seen: int = 0
    saved: int = 0


@dataclass(eq=False, slots=True)
class Family:
    """Prompts that are mostly the same. `label`: what metrics call it; `scope`: an opaque name; `total`: where what its
    backend says is counted beside here."""

    id: str
    label: str
    group: bytes
    scope: str
    model: str
    total: Counts
    sketch: Sketch
    head: tuple[Block, ...] = ()
    requests: int = 0
    size: int = 0
    _changed: int = 0
    _rules: Counter[str] = field(default_factory=Counter)
    _shared: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT))
    _places: LRUCache[tuple[str, int, str], _Place] = field(default_factory=lambda: LRUCache(PLACES))
    _before: Counts = field(default_factory=Counts)
    _after: Counts = field(default_factory=Counts)
    _waits: deque[float] = field(default_factory=lambda: deque(maxlen=WAITS))

    def __repr__(self) -> str:
        return f"<Family {self.id} of {self.requests} requests>"

    def sent(self, size: int, changed: tuple[str, ...]) -> None:
        """A request whose head has `size` bytes, changed by these rules, goes to a backend."""
        self.requests += 1
        self.size = size
        self._changed += bool(changed)
        self._rules.update(changed)

    def met(self, comparison: Comparison) -> None:
        """Its head was compared with the one before."""
        self._shared.append(comparison.shared)
        parted = comparison.divergence
        if parted is not None:
            name = parted.pointer, parted.offset, parted.kind.value
            place = self._places.get(name) or _Place(parted)
            place.last = parted
            place.seen += 1
            place.saved += parted.saves
            self._places[name] = place

    def answered(self, prompt: int, cached: int, changed: bool) -> None:
        """A backend says how many tokens a prompt had, and how many of them it had in its cache. `changed`: whether a
        rule had changed the prompt."""
        self.total.add(prompt, cached)
        (self._after if changed else self._before).add(prompt, cached)

    def began(self, seconds: float) -> None:
        """The first bytes of a streamed answer came after so long."""
        self._waits.append(seconds)

    @property
    def could_save(self) -> int:
        """Bytes that would have been equal if what has differed had been made equal."""
        return sum(place.saved for place in self._places.values())

    def row(self) -> dict[str, Any]:
        """All of it as plain data."""
        both = Counts(prompt=self._before.prompt + self._after.prompt, cached=self._before.cached + self._after.cached)
        parts = {"before": self._before, "after": self._after}
        return {
            "id": self.id,
            "scope": self.scope,
            "model": self.model,
            "requests": self.requests,
            "changed": {"requests": self._changed, "by_rule": dict(self._rules)},
            "head": _size(self.size),
            "shared": _size(int(median(self._shared))) if self._shared else None,
            "divergence": self._divergence(),
            "upstream": {
                **both.told(),
                **{name: {"requests": part.requests, **part.told()} for name, part in parts.items()},
            },
            "ttft": {"count": len(self._waits), "p50": self._wait(0.5), "p95": self._wait(0.95)},
        }

    def _divergence(self) -> dict[str, Any] | None:
        """The place that costs most."""
        place = max(self._places.values(), key=lambda place: (place.saved, place.seen), default=None)
        if place is None:
            return None
        last = place.last
        return {
            "pointer": last.pointer,
            "offset": last.offset,
            "kind": last.kind.value,
            "rule": last.rule,
            "span": [_shown(text) for text in last.span] if last.kind in SHOWN else None,
            "length": [len(text) for text in last.span],
            "saves": _size(last.saves),
            "seen": place.seen,
        }

    def _wait(self, part: float) -> float | None:
        """The duration that this part of the last answers began within; seconds."""
        waits = sorted(self._waits)
        return waits[min(len(waits) - 1, int(part * len(waits)))] if waits else None


def _size(count: int) -> dict[str, int]:
    return {"bytes": count, "tokens": tokens(count)}


def _shown(text: str) -> str:
    return text[:LONGEST_SHOWN].encode("utf-8", "replace").decode()
