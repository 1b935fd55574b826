"""Asks the backend in the background what a caller was given a stored answer to. The caller's own request, with the
caller's own credential; what comes is proven, accounted for and kept as any answer is."""

from cacheproxy.core.model import Answer
from cacheproxy.core.outcome import Reason
from cacheproxy.core.rules import Mode
from cacheproxy.engine.authority import Authority
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.keeper import Keeper, Source
from cacheproxy.engine.ledger import Ledger
from cacheproxy.engine.sender import Sender
from cacheproxy.errors import AnswerError, UpstreamCut
from cacheproxy.ports import Clock

_KEPT = frozenset({Mode.ON, Mode.OPT_IN, Mode.WRITE_ONLY})
"""Modes of the exact layer in which new answers are kept."""


class Asker:
    """Asks, and keeps."""

    def __init__(
        self, *, sender: Sender, keeper: Keeper, authority: Authority, ledger: Ledger, clock: Clock
    ) -> None:  # fmt: skip
        self._sender = sender
        self._keeper = keeper
        self._authority = authority
        self._ledger = ledger
        self._clock = clock

    async def ask(self, bound: Bound, *, keep: bool) -> Answer | None:
        """The backend's answer to `bound`; None if none is proven complete. `keep`: it is stored, where answers to
        `bound` are."""
        asked_at, began = self._clock.now(), self._clock.monotonic()
        account = self._ledger.open(bound.prefix)
        try:
            reply, _ = await self._sender.send(bound, bound.standing(background=True))
        except AnswerError:
            return None
        try:
            self._authority.heard(bound.ask.credential, reply.status, proves=True)
            account.heard(reply)
            recording = self._keeper.recording(bound, reply.status, reply.fields, anyway=True)
            try:
                while recording.trouble is None and (data := await reply.read()):
                    account.feed(data)
                    recording.feed(data)
                account.close(whole=recording.trouble is None)
                answer = recording.conclude()
            finally:
                recording.give_up(Reason.INCOMPLETE)
            if isinstance(answer, Reason) or answer.status != 200:
                return None
            if keep and bound.mode in _KEPT and self._keeper.lifetime(bound, answer.status, reply.fields) > 0:
                took = self._clock.monotonic() - began
                await self._keeper.put(bound, answer, Source(reply.fields, asked_at, took, prefix=account.family))
            return answer
        except (UpstreamCut, AnswerError):
            return None
        finally:
            account.close(whole=False)
            reply.close()
