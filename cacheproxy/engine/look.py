"""A look into the store: what is there for a request, and whether its caller may have it."""

from dataclasses import dataclass

from cacheproxy.core import freshness, replay
from cacheproxy.core.freshness import Allowance, Freshness
from cacheproxy.core.model import Entry
from cacheproxy.core.outcome import Forward, Reason
from cacheproxy.core.rules import Mode
from cacheproxy.engine.authority import Authority, Grant, accepted_at
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.call import Call
from cacheproxy.engine.shelf import Mark, Shelf
from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock


@dataclass(frozen=True, slots=True)
class Look:
    """What the store had: an entry (usable or not), since when, what it is for this request, and why it is not
    served."""

    mark: Mark
    entry: Entry | None
    state: Freshness
    reason: Reason
    forward: Forward

    @property
    def usable(self) -> bool:
        return self.reason is Reason.ABSENT and self.entry is not None


class Looks:
    """Looks. `allowance`: what may be served past its lifetime."""

    def __init__(self, shelf: Shelf, authority: Authority, clock: Clock, allowance: Allowance) -> None:
        self._shelf = shelf
        self._authority = authority
        self._clock = clock
        self._allowance = allowance

    async def look(self, bound: Bound) -> Look:
        """What is stored for `bound`."""
        mark = self._shelf.mark()
        if bound.mode is Mode.WRITE_ONLY or bound.controls.no_cache:
            reason = Reason.WRITE_ONLY if bound.mode is Mode.WRITE_ONLY else Reason.NO_CACHE
            return Look(mark, None, Freshness.EXPIRED, reason, Forward.REQUEST)
        entry = await self._shelf.get(bound.ask.key)
        if isinstance(entry, Trouble):
            return Look(mark, None, Freshness.EXPIRED, Reason.STORE_TROUBLE, Forward.MISS)
        if entry is None or entry.key != bound.ask.key or entry.owner != bound.ask.scope.owner:
            return Look(mark, None, Freshness.EXPIRED, Reason.ABSENT, Forward.MISS)
        state = freshness.judge(entry, bound.controls, self._clock.now(), self._allowance)
        wants = {"stream": bound.ask.stream, "wants_usage": bound.ask.wants_usage}
        if (unfit := replay.why_not(entry.answer, entry.endpoint, **wants)) is not None:
            return Look(mark, None, state, unfit, Forward.MISS)
        if state is Freshness.EXPIRED:
            return Look(mark, entry, state, Reason.EXPIRED, Forward.STALE)
        if state is Freshness.TOO_OLD:
            return Look(mark, entry, state, Reason.TOO_OLD, Forward.REQUEST)
        return Look(mark, entry, state, Reason.ABSENT, Forward.MISS)

    async def admit(self, call: Call, bound: Bound, entry: Entry) -> Grant | None:
        """A grant for this caller to be served `entry`."""
        grant = await self._authority.admit(bound.ask.credential, call.fields, accepted_at(entry, bound.ask.credential))
        call.stages.lap("auth")
        return grant
