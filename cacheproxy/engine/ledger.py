"""What backends say of the tokens of their answers: how many of a prompt they had in a cache, noted for the family of
prompts it belongs to; and how many there were, for the limits of who asked.

Law: counts only what a backend has said of an answer, both numbers or none, so that the share is true; what is broken
off before the backend says it leaves no trace.
"""

from cachetools import LRUCache

from cacheproxy.core import policy
from cacheproxy.core.model import Form
from cacheproxy.core.prefix import PREFIXED
from cacheproxy.core.standing import Standing
from cacheproxy.engine.families import Families
from cacheproxy.engine.family import Family
from cacheproxy.engine.meter import Counts, Meter, meter
from cacheproxy.engine.prefixed import Prefix
from cacheproxy.engine.rates import Rates
from cacheproxy.ports import Clock, Journal, Reply

MODELS = 1024


class Account:
    """One request on its way to the backend, and what is said of its prompt."""

    def __init__(
        self, ledger: "Ledger", prefix: Prefix | None, family: Family | None, sent_at: float,
        standing: Standing | None = None,
    ) -> None:  # fmt: skip
        self._ledger = ledger
        self._standing = standing
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
        counted = self._family is not None or self._limited
        if counted and form is not None and reply.status == 200:
            self._meter = meter(reply.fields, form)
            self._waits = form is Form.EVENTS

    @property
    def _limited(self) -> bool:
        """What it costs is counted for who asked."""
        standing = self._standing
        return standing is not None and standing.booking is not None and bool(standing.limits.tokens)

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
        counts = None if taken is None else taken.counts()
        if counts is None:
            return
        if self._family is not None and self._prefix is not None:
            self._ledger.note(self._family, self._prefix, counts, whole=whole)
        if self._standing is not None:
            self._ledger.spent(self._standing, counts)


class Ledger:
    """Opens an account for every request that goes to the backend."""

    def __init__(self, families: Families, journal: Journal, clock: Clock, rates: Rates | None = None) -> None:
        self._families = families
        self._rates = rates
        self._journal = journal
        self._clock = clock
        self._tellers: LRUCache[str, bool] = LRUCache(MODELS)
        """Models whose backend has once said how much was cached. Some say it only where that is not nothing."""

    def __repr__(self) -> str:
        return f"<Ledger of {self._families!r}>"

    def open(self, prefix: Prefix | None, standing: Standing | None = None) -> Account:
        """An account for a request that is being sent now; one that counts nothing if it has no instructions and no
        `standing` with limits."""
        if prefix is None or prefix.endpoint not in PREFIXED:
            return Account(self, None, None, 0.0, standing)
        for rule in prefix.changed:
            self._journal.count("prefix_changed", rule)
        family = self._families.sent(prefix.owner, prefix.model, prefix.head, prefix.changed)
        return Account(self, prefix, family, self._clock.monotonic(), standing)

    def began(self, family: Family, sent_at: float) -> None:
        """The first bytes of a stream have come."""
        seconds = self._clock.monotonic() - sent_at
        family.began(seconds)
        self._journal.observe("ttft", seconds, family.label)

    def spent(self, standing: Standing, counts: Counts) -> None:
        """So much its answer has cost."""
        if self._rates is not None:
            self._rates.spend(standing, counts.prompt + counts.written)

    def note(self, family: Family, prefix: Prefix, counts: Counts, *, whole: bool) -> None:
        """Count what a backend has said."""
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
