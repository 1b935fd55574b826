"""Sends bound requests to the backend, asking for the usage of streams that are recorded."""

from cachetools import LRUCache

from cacheproxy.core import policy, usage
from cacheproxy.engine.binder import Bound
from cacheproxy.engine.passage import forwarded
from cacheproxy.ports import Backend, Outbound, Reply

MODELS = 1024


class Sender:
    """Knows which models' backends take, or refuse, being asked for a stream's usage."""

    def __init__(self, backend: Backend, *, ask_usage: bool) -> None:
        self._backend = backend
        self._ask_usage = ask_usage
        self._taken: LRUCache[str, bool] = LRUCache(MODELS)

    async def send(self, bound: Bound) -> tuple[Reply, bool]:
        """Send `bound`; the reply, and whether usage was asked for that the caller did not want. Backs out once if
        the backend refuses that. Raises `UpstreamUnreachable`, `UpstreamTimeout`."""
        head, outgoing, ask = bound.head, bound.outgoing, bound.ask
        fields = forwarded(head.fields)
        options = bound.body.get("stream_options")
        may_ask = ask.stream and not ask.wants_usage and isinstance(options, dict | None)
        taken = self._taken.get(ask.model)
        plainly = Outbound(head.method, head.target, fields, outgoing.wire or None)
        if not (may_ask and self._ask_usage and taken is not False and ask.endpoint in policy.ASKED_FOR_USAGE):
            return await self._backend.send(plainly), False
        asking = outgoing.altered(usage.ask(outgoing.plain, options))
        reply = await self._backend.send(Outbound(head.method, head.target, fields, asking.wire))
        if reply.status == 200:
            self._taken[ask.model] = True
        elif reply.status in (400, 422) and taken is None:
            # Nothing was generated. Only if the very same request passes without the field was the field at fault.
            reply.close()
            reply = await self._backend.send(plainly)
            if reply.status == 200:
                self._taken[ask.model] = False
            return reply, False
        return reply, True
