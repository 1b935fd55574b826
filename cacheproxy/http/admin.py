"""The admin listener: health and metrics open, the rest behind the token as soon as one is set.

Without a token it listens on loopback only, and then it answers only requests that a browser did not make for
another site: a foreign `Origin`, or a `Host` that is no loopback name, is refused.
"""

import hmac
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from cacheproxy.core.hosts import is_loopback
from cacheproxy.engine.families import Families
from cacheproxy.engine.feedback import Feedback
from cacheproxy.engine.knowledge import Knowledge
from cacheproxy.engine.purge import Purge
from cacheproxy.errors import place_of
from cacheproxy.http import feedback, knowledge, prefixes, purges
from cacheproxy.http.replies import error_reply, json_reply
from cacheproxy.ports import Book

log = logging.getLogger("cacheproxy.http")

_OPEN = ("/livez", "/readyz", "/metrics")
_PAGES = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class Desk:
    """What the admin listener serves from: counters, the redacted configuration, readiness, the ways to drain, to
    purge and to tell of new versions, and what is known of prompts."""

    book: Book
    config: dict[str, Any]
    ready: Callable[[], bool]
    drain: Callable[[], None]
    purge: Purge
    knowledge: Knowledge
    feedback: Feedback
    families: Families
    token: str | None


def application(desk: Desk) -> web.Application:
    """The admin application."""

    async def livez(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        ready = desk.ready()
        return web.Response(text="ok\n" if ready else "draining\n", status=200 if ready else 503)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(
            body=desk.book.exposition(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    async def stats(_: web.Request) -> web.Response:
        return json_reply(desk.book.summary())

    async def config(_: web.Request) -> web.Response:
        return json_reply(desk.config)

    async def drain(_: web.Request) -> web.Response:
        desk.drain()
        return json_reply({"draining": True}, 202)

    async def page(request: web.Request) -> web.Response:
        name, kind = _PAGES[request.path]
        body = resources.files("cacheproxy.http").joinpath("dashboard", name).read_bytes()
        return web.Response(body=body, content_type=kind, charset="utf-8")

    app = web.Application(middlewares=[_door(desk.token), _errors])
    app.router.add_get("/livez", livez)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/admin/stats", stats)
    app.router.add_get("/admin/config", config)
    app.router.add_post("/admin/drain", drain)
    app.router.add_routes(purges.routes(desk.purge))
    app.router.add_routes(knowledge.routes(desk.knowledge))
    app.router.add_routes(feedback.routes(desk.feedback))
    app.router.add_routes(prefixes.routes(desk.families))
    for path in _PAGES:
        app.router.add_get(path, page)
    return app


_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _door(token: str | None) -> Any:
    @web.middleware
    async def door(request: web.Request, handler: _Handler) -> web.StreamResponse:
        if request.path not in _OPEN:
            refusal = _refused(request, token)
            if refusal is not None:
                return refusal
        response = await handler(request)
        response.headers["Cache-Control"] = "private, no-store"
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    return door


def _refused(request: web.Request, token: str | None) -> web.Response | None:
    if token is None:
        return None if _is_local(request) else error_reply(403, "forbidden", "This page answers local requests only.")
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode()):
        return None
    refusal = error_reply(401, "unauthorized", "Send the admin token: Authorization: Bearer <token>.")
    refusal.headers["WWW-Authenticate"] = "Bearer"
    return refusal


def _is_local(request: web.Request) -> bool:
    host = urlsplit(f"//{request.headers.get('Host', '')}")
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != host.netloc:
        return False
    return is_loopback(host.hostname or "")


@web.middleware
async def _errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        code = {404: "not_found", 405: "method_not_allowed"}.get(error.status, "invalid_request")
        return error_reply(error.status, code, error.reason)
    except Exception as error:  # noqa: BLE001 - whatever it is, the operator gets an answer of the same form
        log.error("an admin call failed inside the proxy: %s", place_of(error))
        return error_reply(500, "internal_error", "The proxy failed.")
