"""Serves stored answers: in the form, coding and pace that the caller is to get."""

from collections.abc import Callable
from dataclasses import replace

from cacheproxy.core import coding, key, policy, usage
from cacheproxy.core import fields as http_fields
from cacheproxy.core.model import Answer, Entry, Fields, Form
from cacheproxy.core.outcome import Outcome, Reason, Source
from cacheproxy.core.resumption import Numbering
from cacheproxy.engine.aside import aside
from cacheproxy.engine.authority import Grant
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.call import Call
from cacheproxy.engine.pace import Pace, paced
from cacheproxy.engine.replays import Replays
from cacheproxy.engine.savings import Savings
from cacheproxy.engine.served import Served, Voice
from cacheproxy.ports import Clock, Journal

PACKED_FROM = 1024
"""Bytes from which on a JSON answer is packed for callers who accept it."""


class Serving:
    """Turns entries into answers on their way out. `identify`: the identity of the answer to the request of a key that
    was asked for at a time."""

    def __init__(  # noqa: PLR0913 - the parts of the house, by name
        self, *, voice: Voice, savings: Savings, journal: Journal, clock: Clock, pace: Pace,
        identify: Callable[[bytes, float], bytes],
    ) -> None:  # fmt: skip
        self.voice = voice
        self._identify = identify
        self._savings = savings
        self._journal = journal
        self._clock = clock
        self._pace = pace
        self._replays = Replays()

    async def hit(  # noqa: PLR0913 - one head, every fact about it
        self, call: Call, bound: Bound, entry: Entry, grant: Grant, *, stale: bool, reason: Reason | None = None,
        likeness: tuple[float, float] | None = None, collapsed: bool = False,
    ) -> Served:  # fmt: skip
        """`entry` as the answer to `bound`, for whom `grant` was given. `likeness`: of a question that is not this one,
        its similarity and what that had to reach; `collapsed`: it was waited for while it was another caller's."""
        if grant.credential != bound.ask.credential or entry.owner != bound.ask.scope.owner:
            raise AssertionError("a grant of one credential for an entry of another")
        now = self._clock.now()
        outcome = Outcome(
            Source.STALE if stale else Source.HIT,
            reason,
            ttl=int(entry.fresh_until - now),
            age=max(0, int(now - entry.stored_at)),
            entry_id=key.entry_id(entry.key),
            likeness=likeness,
            collapsed=collapsed,
        )
        answer = self._replays.render(entry, stream=bound.ask.stream, wants_usage=bound.ask.wants_usage)
        if bound.wish.ids and bound.ask.stream and answer.form is Form.EVENTS:
            answer = await aside(len(answer.body), lambda: self._numbered(bound, entry, answer))
        self._savings.note(entry)
        return await self._served(call, answer, entry, outcome, now)

    def _numbered(self, bound: Bound, entry: Entry, rendered: Answer) -> Answer:
        """`entry` as a stream with ids, after the event that the request names: the numbers are those that its events
        had when they came, and what was stored stays as it is, since callers join the parts."""
        stored = entry.answer if entry.answer.form is Form.EVENTS else rendered
        identity = self._identify(entry.key, entry.asked_at)
        numbering = Numbering(identity, bound.wish.after_in(identity))
        body = numbering.feed(stored.body) + numbering.rest
        if stored.has_usage and not bound.ask.wants_usage and entry.endpoint in policy.ASKED_FOR_USAGE:
            sieve = usage.Filter()
            body = sieve.feed(body) + sieve.rest
        return replace(stored, body=body, id_literal=b"", created_literal=b"")

    async def composed(self, call: Call, bound: Bound, entries: list[Entry], answer: Answer) -> Served:
        """`answer` put together from `entries`, one for each input of `bound`."""
        now = self._clock.now()
        outcome = Outcome(
            Source.HIT if all(now < entry.fresh_until for entry in entries) else Source.STALE,
            ttl=min(int(entry.fresh_until - now) for entry in entries),
            age=max(0, *(int(now - entry.stored_at) for entry in entries)),
        )
        for entry in entries:
            self._savings.note(entry)
        whole = replace(entries[0], key=bound.ask.key, answer=answer)
        return await self._served(call, answer, whole, outcome, now)

    async def partly(self, call: Call, bound: Bound, known: list[Entry], answer: Answer, outcome: Outcome) -> Served:
        """`answer` put together from the stored `known` and from what the backend gave for the rest."""
        for entry in known:
            self._savings.note(entry)
        whole = replace(known[0], key=bound.ask.key, answer=answer)
        return await self._served(call, answer, whole, outcome, self._clock.now())

    async def _served(self, call: Call, answer: Answer, entry: Entry, outcome: Outcome, now: float) -> Served:
        # Where hits are hidden they go out plain: the backend might not have packed its answer.
        packed = None if self.voice.hides else _coding(call.fields, answer)
        served = self.voice.hit(call.stages, outcome, answer, entry.endpoint, now, packed)
        if packed is not None and isinstance(served.body, bytes):
            plain = served.body
            served.body = await aside(len(plain), lambda: coding.pack(plain, packed))
            served.length = len(served.body)
        if answer.form is Form.EVENTS:
            self._journal.observe("first_event", call.stages.total, "hit")
        if answer.form is Form.EVENTS and not self._pace.instant and isinstance(served.body, bytes):
            served.body, served.length = paced(served.body, entry, self._pace), None
        return served


def _coding(asked: Fields, answer: Answer) -> bytes | None:
    """The content coding in which `answer` goes out: one that the caller accepts, if it is worth it."""
    if answer.form is Form.EVENTS or len(answer.body) < PACKED_FROM:
        return None
    return coding.choose(http_fields.values(asked, b"accept-encoding"))
