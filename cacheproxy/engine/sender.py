"""Sends requests to the backend, with what we add to them: the wish for the usage of streams that are recorded, and
hints for the backend's prefix cache.

A backend may refuse fields that it does not know. What it refused once, for an operation and a model, is not sent to it
again. No caller gets a refusal of what it did not say: a refused request is sent again without our additions.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace

from cachetools import LRUCache

from cacheproxy.core import canonical, policy, usage
from cacheproxy.core import fields as http_fields
from cacheproxy.core.model import Endpoint
from cacheproxy.core.standing import Standing
from cacheproxy.engine.bound import Bound, Head, Outgoing
from cacheproxy.engine.hints import Hints, with_hint
from cacheproxy.engine.passage import forwarded
from cacheproxy.engine.prefixed import Prefix
from cacheproxy.engine.rates import Rates
from cacheproxy.errors import UpstreamUnreachable
from cacheproxy.ports import Backend, Outbound, Reply

MODELS = 1024
USAGE = "usage"
REFUSED = (400, 422)


@dataclass(slots=True)
class _Known:
    """What a backend is known to take, and to refuse, for an operation and a model."""

    takes: set[str] = field(default_factory=set)
    refuses: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Addition:
    """Something that may be added to a body."""

    name: str
    value: object

    def to(self, plain: bytes) -> bytes:
        if self.name == USAGE:
            return usage.ask(plain, self.value)
        return with_hint(plain, self.name, self.value if isinstance(self.value, bool | int) else str(self.value))


class Sender:
    """Knows which models' backends take, or refuse, what is added. `routed`: there are replicas to choose from;
    `gated`: whether a request with this method and target takes a slot."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, backend: Backend, *, ask_usage: bool, hints: Hints, routed: bool,
        gated: Callable[[str, bytes], bool] = policy.is_work, rates: Rates | None = None,
    ) -> None:  # fmt: skip
        self._backend = backend
        self._ask_usage = ask_usage
        self._hints = hints
        self._routed = routed
        self._gated = gated
        self._rates = rates
        self._known: LRUCache[tuple[Endpoint | None, str], _Known] = LRUCache(MODELS)

    async def send(self, bound: Bound, standing: Standing | None = None) -> tuple[Reply, bool]:
        """Send `bound` when it is its turn; the reply, and whether usage was asked for that the caller did not want.
        `standing`: how it waits for that, if not as its caller's own. Raises `UpstreamUnreachable`, `UpstreamTimeout`,
        `Refused`."""
        additions = self._of_prefix(bound.prefix, bound.priority)
        options = bound.body.get("stream_options")
        if (
            self._ask_usage
            and bound.ask.stream
            and not bound.ask.wants_usage
            and isinstance(options, dict | None)
            and bound.ask.endpoint in policy.ASKED_FOR_USAGE
        ):
            additions.append(_Addition(USAGE, options))
        about = (bound.ask.endpoint, bound.ask.model)
        head = bound.head
        if http_fields.first(head.fields, b"last-event-id") is not None:  # the backend is to begin at the beginning
            head = replace(head, fields=tuple(line for line in head.fields if line[0].lower() != b"last-event-id"))
        gated = self._gated(bound.head.method, bound.head.target)
        standing = (standing or bound.standing()) if gated else None
        reply, added = await self._sent(head, bound.outgoing, bound.prefix, about, additions, standing)
        return reply, any(addition.name == USAGE for addition in added)

    def standing(
        self, head: Head, body: Outgoing | AsyncIterator[bytes] | None, prefix: Prefix | None = None
    ) -> Standing | None:
        """How a request that is not looked up waits for a slot; None if it takes none."""
        size = len(body.plain) if isinstance(body, Outgoing) else 0
        model = "" if prefix is None else prefix.model
        return head.standing(model, size) if self._gated(head.method, head.target) else None

    async def pass_on(
        self, head: Head, body: Outgoing | AsyncIterator[bytes] | None, prefix: Prefix | None = None,
        standing: Standing | None = None,
    ) -> tuple[Reply, bool]:  # fmt: skip
        """Send a request that is not looked up, with hints where it is known what it asks; the reply, and whether usage
        was asked for as in `send`. Raises as `send`."""
        about = (prefix.endpoint, prefix.model) if prefix is not None else (None, "")
        if isinstance(body, Outgoing):
            additions = [*self._of_prefix(prefix, head.priority), *self._of_limits(prefix, standing)]
            reply, added = await self._sent(head, body, prefix, about, additions, standing)
            return reply, any(addition.name == USAGE for addition in added)
        request = Outbound(head.method, head.target, forwarded(head.fields), body, standing=standing)
        return await self._asked(request), False

    def _of_limits(self, prefix: Prefix | None, standing: Standing | None) -> list[_Addition]:
        """The wish for the usage of a stream that nobody records, where its tokens are limited: else who asks for no
        usage, and for nothing to be stored, would have no limit."""
        if prefix is None or standing is None or not standing.limits.tokens or not self._ask_usage:
            return []
        options = prefix.fields.get("stream_options")
        asks = prefix.fields.get("stream") is True and not canonical.wants_usage(prefix.fields)
        if asks and isinstance(options, dict | None) and prefix.endpoint in policy.ASKED_FOR_USAGE:
            return [_Addition(USAGE, options)]
        return []

    async def _asked(self, request: Outbound) -> Reply:
        try:
            return await self._backend.send(request)
        except UpstreamUnreachable:
            if self._rates is not None and request.standing is not None:
                self._rates.give_back(request.standing)
            raise

    def _of_prefix(self, prefix: Prefix | None, priority: int) -> list[_Addition]:
        told = {**self._hints.values(prefix), **self._hints.urgency(prefix, priority)}
        return [_Addition(name, value) for name, value in told.items()]

    async def _sent(  # noqa: PLR0913 - one request, every fact about it
        self, head: Head, outgoing: Outgoing, prefix: Prefix | None, about: tuple[Endpoint | None, str],
        wanted: list[_Addition], standing: Standing | None,
    ) -> tuple[Reply, list[_Addition]]:  # fmt: skip
        """The reply, and what was added in the end. Backs out while the backend refuses: of what it is not known to
        take, hints first, then the wish for usage; then of all else."""
        known = self._known.get(about) or _Known()
        route = prefix.route if self._routed and prefix is not None else None
        added = [addition for addition in wanted if addition.name not in known.refuses]
        fields = forwarded(head.fields)
        if standing is not None and (lines := self._hints.lines(standing.priority)):
            names = {name for name, _ in lines}
            fields = (*(line for line in fields if line[0].lower() not in names), *lines)
        dropped: list[_Addition] = []
        while True:
            body = outgoing
            for addition in added:
                body = body.altered(addition.to(body.plain))
            reply = await self._asked(Outbound(head.method, head.target, fields, body.wire or None, route, standing))
            if reply.status == 200 and wanted:
                # Only if the very same request passes without a field was the field at fault.
                known.takes |= {addition.name for addition in added}
                known.refuses |= {addition.name for addition in dropped}
                known.takes -= known.refuses
                self._known[about] = known
            if reply.status not in REFUSED or not added:
                return reply, added
            reply.close()  # nothing was generated
            doubtful = [addition for addition in added if addition.name not in known.takes] or added
            dropped = [addition for addition in doubtful if addition.name != USAGE] or doubtful
            added = [addition for addition in added if addition not in dropped]
