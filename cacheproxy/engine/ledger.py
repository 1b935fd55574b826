"""What backends say they had of their prompts in a cache, noted for the families of prompts they belong to.

Law: counts only what a backend has said of an answer, both numbers or none, so that the share is true; what is broken
off before the backend says it leaves no trace.
"""

from cachetools import LRUCache

from cacheproxy.core import policy
from cacheproxy.core.model import Form
from cacheproxy.core.prefix import PREFIXED
from cacheproxy.engine.families import Families
from cacheproxy.engine.family import Family
from cacheproxy.engine.meter import Meter, meter
from cacheproxy.engine.prefixed import Prefix
from cacheproxy.ports import Clock, Journal, Reply

MODELS = 1024


class Account:
    """One request on its way to the backend, and what is said of its prompt."""

    def __init__(self, ledger: "Ledger", prefix: Prefix | None, family: Family | None, sent_at: float) -> None:
        self._ledger = ledger
        self._prefix = prefix
        self._family = family
        self._sent_at = sent_at
        self._meter: Meter | None = None
        self._waits = False

    @property
    def family(self) -> str:
        """The id of the family of its prompt; empty if it has none."""
        return self._family.id if self._family is not None else ""

    def heard(self, reply: Reply) -> None:
        """The head of the answer has come."""
        form = policy.form_of(reply.fields)
        if self._family is not None and form is not None and reply.status == 200:
            self._meter = meter(reply.fields, form)
            self._waits = form is Form.EVENTS

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the body as they came."""
        if self._waits and self._family is not None:
            self._waits = False
            self._ledger.began(self._family, self._sent_at)
        if self._meter is not None:
            self._meter.feed(data)

    def close(self, *, whole: bool) -> None:
        """Nothing more will come; `whole`: the body has ended, and was not broken off. Only the first call counts."""
        taken, self._meter, self._waits = self._meter, None, False
        if taken is not None and self._family is not None and self._prefix is not None:
            self._ledger.note(self._family, self._prefix, taken, whole=whole)


class Ledger:
    """Opens an account for every request that goes to the backend."""

    def __init__(self, families: Families, journal: Journal, clock: Clock) -> None:
        self._families = families
        self._journal = journal
        self._clock = clock
        self._tellers: LRUCache[str, bool] = LRUCache(MODELS)
        """Models whose backend has once said how much was cached. Some say it only where that is not nothing."""

    def __repr__(self) -> str:
        return f"<Ledger of {self._families!r}>"

    def open(self, prefix: Prefix | None) -> Account:
        """An account for a request that is being sent now; one that counts nothing if it has no instructions."""
        if prefix is None or prefix.endpoint not in PREFIXED:
            return Account(self, None, None, 0.0)
        for rule in prefix.changed:
            self._journal.count("prefix_changed", rule)
        family = self._families.sent(prefix.owner, prefix.model, prefix.head, prefix.changed)
        return Account(self, prefix, family, self._clock.monotonic())

    def began(self, family: Family, sent_at: float) -> None:
        """The first bytes of a stream have come."""
        seconds = self._clock.monotonic() - sent_at
        family.began(seconds)
        self._journal.observe("ttft", seconds, family.label)

    def note(self, family: Family, prefix: Prefix, taken: Meter, *, whole: bool) -> None:
        """Count what `taken` has read."""
        counts = taken.counts()
        if counts is None:
            return
        cached = counts.cached
        if cached is not None:
            self._tellers[prefix.model] = True
        elif whole and prefix.model in self._tellers:
            cached = 0
        else:
            return
        changed = bool(prefix.changed)
        family.answered(counts.prompt, cached, changed)
        labels = (family.label, "yes" if changed else "no")
        self._journal.add("prompt_tokens", counts.prompt, *labels)
        self._journal.add("cached_tokens", cached, *labels)
