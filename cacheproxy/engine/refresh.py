"""Fetches answers anew in the background, for entries that are used near the end of their lifetime or just past it.

One refresh at a time for a key. A refresh that fails leaves the entry as it is; nobody waits for one.
"""

from cacheproxy.core.outcome import Reason
from cacheproxy.engine.authority import Authority
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.fill import Fill
from cacheproxy.engine.keeper import Keeper, Source
from cacheproxy.engine.ledger import Ledger
from cacheproxy.engine.sender import Sender
from cacheproxy.errors import AnswerError, UpstreamCut
from cacheproxy.ports import Clock, Journal


class Refresher:
    """Asks the backend again what a caller has just been served from the cache."""

    def __init__(  # noqa: PLR0913 - the parts of the house, by name
        self, *, sender: Sender, keeper: Keeper, authority: Authority, fill: Fill, ledger: Ledger, journal: Journal,
        clock: Clock,
    ) -> None:  # fmt: skip
        self._sender = sender
        self._keeper = keeper
        self._authority = authority
        self._fill = fill
        self._ledger = ledger
        self._journal = journal
        self._clock = clock
        self._running: set[bytes] = set()

    def __repr__(self) -> str:
        return f"<Refresher {len(self._running)} running>"

    @property
    def running(self) -> int:
        return len(self._running)

    def refresh(self, bound: Bound) -> bool:
        """Begin a refresh of `bound`'s answer; False if one is running already or there is too much to do."""
        key = bound.ask.key
        if key in self._running:
            return False
        self._running.add(key)
        if self._fill.offer(self._fetch(bound), lambda: self._running.discard(key)):
            return True
        self._running.discard(key)
        return False

    async def _fetch(self, bound: Bound) -> None:
        asked_at, began = self._clock.now(), self._clock.monotonic()
        account = self._ledger.open(bound.prefix)
        try:
            reply, _ = await self._sender.send(bound, bound.standing(background=True))
        except AnswerError:
            self._journal.count("refresh", "failed")
            return
        refused: Reason | None = Reason.INCOMPLETE
        try:
            self._authority.heard(bound.ask.credential, reply.status, proves=True)
            account.heard(reply)
            recording = self._keeper.recording(bound, reply.status, reply.fields)
            try:
                # What cannot be kept need not be generated to its end.
                while recording.trouble is None and (data := await reply.read()):
                    account.feed(data)
                    recording.feed(data)
                account.close(whole=recording.trouble is None)
                took = self._clock.monotonic() - began
                source = Source(reply.fields, asked_at, took, prefix=account.family)
                refused = await self._keeper.keep(bound, recording, source)
            finally:
                recording.give_up(Reason.INCOMPLETE)
        except (UpstreamCut, AnswerError):
            refused = Reason.INCOMPLETE
        finally:
            account.close(whole=False)
            reply.close()
            self._journal.count("refresh", "kept" if refused is None else "failed")
