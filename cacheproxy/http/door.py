"""Who may come in at the admin listener, and what is written down of what they change.

Health and metrics are open, all else is behind a token as soon as one is set. Without one the listener is on loopback
only, and then it answers only requests that a browser did not make for another site: a foreign `Origin`, or a `Host`
that is no loopback name, is refused.
"""

import math
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

from cacheproxy.core.hosts import is_loopback
from cacheproxy.http import calls
from cacheproxy.http.audit import Audit
from cacheproxy.http.replies import error_reply
from cacheproxy.http.tokens import Access, Bearer, Failures, Tokens

OPEN = frozenset(path for (_, path), call in calls.CALLS.items() if call.open)
LOOPBACK = "loopback"

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; frame-ancestors 'none'"
)

CLOSED = {
    "Cache-Control": "private, no-store", "Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff",
}  # fmt: skip
"""What every answer says: it is for nobody else's eyes, and nobody else's page."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Door:
    """Lets requests in. `now`: of a monotonic clock."""

    def __init__(self, tokens: Tokens, audit: Audit, now: Callable[[], float] = time.monotonic) -> None:
        self._tokens = tokens
        self._audit = audit
        self._now = now
        self._failures = Failures()

    async def pass_through(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The answer of `handler`, or a refusal."""
        if request.path in OPEN:
            return _closed(await handler(request))
        who = self._known(request)
        if isinstance(who, web.Response):
            return _closed(who)
        resource = request.match_info.route.resource
        path = resource.canonical if resource is not None else request.path
        if calls.may_read(request.method, path):
            return _closed(await handler(request))
        if isinstance(who, Bearer) and who.access is Access.READ:
            return _closed(error_reply(403, "forbidden", "This token may only read."))
        if resource is None:
            return _closed(await handler(request))
        response = None
        try:
            response = await handler(request)
            return _closed(response)
        finally:
            name = who if isinstance(who, str) else f"token:{who.fingerprint}"
            await self._audit.note(request, f"{request.method} {path}", name, response)

    def _known(self, request: web.Request) -> Bearer | str | web.Response:
        """Who has come, or what is answered to whom nobody knows."""
        if not self._tokens.guarded:
            if _is_local(request):
                return LOOPBACK
            return error_reply(403, "forbidden", "This page answers local requests only.")
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not given.strip():
            return _unauthorized()
        wait = self._failures.wait(request.remote, self._now())
        if wait > 0:
            # The right token too: else whoever guesses would know it by its answer.
            reply = error_reply(429, "too_many_failures", "Too many wrong tokens came from your address; wait.")
            reply.headers["Retry-After"] = str(math.ceil(wait))
            return reply
        bearer = self._tokens.bearer(given.strip().encode("utf-8", "surrogateescape"))
        if bearer is None:
            self._failures.note(request.remote, self._now())
            return _unauthorized()
        return bearer


def _unauthorized() -> web.Response:
    refusal = error_reply(401, "unauthorized", "Send an admin token: Authorization: Bearer <token>.")
    refusal.headers["WWW-Authenticate"] = "Bearer"
    return refusal


def _closed(response: web.StreamResponse) -> web.StreamResponse:
    """The same, for nobody else's eyes and nobody else's page."""
    if not response.prepared:
        response.headers.update(CLOSED)
    return response


def _is_local(request: web.Request) -> bool:
    host = urlsplit(f"//{request.headers.get('Host', '')}")
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != host.netloc:
        return False
    return is_loopback(host.hostname or "")
