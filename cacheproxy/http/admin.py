"""The admin listener: its calls, put together. Who may use them is said in door.py, what they are in calls.py."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from cacheproxy import __version__
from cacheproxy.engine.catalogue import Catalogue
from cacheproxy.engine.deferral import Vault
from cacheproxy.engine.errand import Errands
from cacheproxy.engine.export import Export
from cacheproxy.engine.families import Families
from cacheproxy.engine.feedback import Feedback
from cacheproxy.engine.intake import Intake
from cacheproxy.engine.jobs import Jobs
from cacheproxy.engine.knowledge import Knowledge
from cacheproxy.engine.lookup import Lookup
from cacheproxy.engine.purge import Purge
from cacheproxy.errors import place_of
from cacheproxy.http import (
    calls,
    entries,
    feedback,
    jobs,
    knowledge,
    lookup,
    parcels,
    prefixes,
    purges,
    traffic,
    upstreams,
)
from cacheproxy.http.audit import Audit
from cacheproxy.http.backend import Backends
from cacheproxy.http.door import Door, Handler
from cacheproxy.http.replies import error_reply, json_reply
from cacheproxy.http.tokens import Tokens
from cacheproxy.ports import Book, Clock

log = logging.getLogger("cacheproxy.http")

PAGES = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
_CODES = {404: "not_found", 405: "method_not_allowed", 413: "request_too_large", 415: "unsupported_encoding"}


@dataclass(frozen=True, slots=True)
class Desk:
    """What the admin listener serves from: counters, the redacted configuration, readiness, the ways to drain, to
    purge, to tell of new versions and to judge answers, what is stored, what is known of prompts, and long work.

    `texts`: words of answers and earlier questions may be shown; `body_bytes`, `answer_bytes`: of a body, and of an
    answer, at most; `close`: lets go of what is the desk's own.
    """

    book: Book
    config: dict[str, Any]
    ready: Callable[[], bool]
    drain: Callable[[], None]
    purge: Purge
    knowledge: Knowledge
    feedback: Feedback
    families: Families
    backends: Backends
    catalogue: Catalogue
    lookup: Lookup
    jobs: Jobs
    deferred: Vault
    errands: Errands
    replay: traffic.Replay
    export: Export
    intake: Intake
    clock: Clock
    tokens: Tokens
    audit: Audit
    texts: bool
    body_bytes: int
    answer_bytes: int
    close: Callable[[], Awaitable[None]]


def application(desk: Desk) -> web.Application:
    """The admin application."""

    async def page(request: web.Request) -> web.Response:
        name, kind = PAGES[request.path]
        body = resources.files("cacheproxy.http").joinpath("dashboard", name).read_bytes()
        return web.Response(body=body, content_type=kind, charset="utf-8")

    async def cleanup(_: web.Application) -> None:
        await desk.close()

    door = Door(desk.tokens, desk.audit)

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await door.pass_through(request, handler)

    app = web.Application(middlewares=[guarded, _errors], client_max_size=desk.body_bytes)
    app.router.add_routes([
        *_state(desk),
        *purges.routes(desk.purge),
        *entries.routes(desk.catalogue, desk.clock, texts=desk.texts),
        *lookup.routes(desk.lookup, texts=desk.texts),
        *knowledge.routes(desk.knowledge),
        *feedback.routes(desk.feedback),
        *prefixes.routes(desk.families),
        *jobs.routes(desk.jobs, desk.deferred, texts=desk.texts),
        *upstreams.routes(desk.backends),
        *traffic.routes(desk.jobs, desk.errands, desk.replay),
        *parcels.routes(desk.export, desk.intake, texts=desk.texts, answer_bytes=desk.answer_bytes),
        *(web.get(path, page) for path in PAGES),
    ])  # fmt: skip
    app.on_cleanup.append(cleanup)
    return app


class _Connection(RequestHandler):
    """aiohttp's connection, with its own refusals in our form; they repeat nothing of what was sent."""

    __slots__ = ()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        del message
        if request.writer.output_size > 0:
            log.error("an admin answer failed inside the proxy: %s", place_of(exc) if exc is not None else "?")
            raise ConnectionError("an answer has begun; another cannot follow in it")
        reply = error_reply(status, _CODES.get(status, "invalid_request"), "The HTTP message could not be parsed.")
        reply.headers["Cache-Control"] = "private, no-store"
        reply.force_close()
        return reply

    def log_exception(self, *_: Any, exc_info: BaseException, **__: Any) -> None:
        """The rest of a body that cannot be read is no fault of ours."""
        level = logging.DEBUG if isinstance(exc_info, web.RequestPayloadError) else logging.ERROR
        log.log(level, "an admin connection failed: %s", place_of(exc_info))


def connections(server: web.Server | None) -> Callable[[], RequestHandler]:
    """Makes the connections of a started runner's server."""
    if server is None:
        raise AssertionError("the runner has not been started")
    options: dict[str, Any] = server._kwargs  # noqa: SLF001 - aiohttp has no other way to its connections
    return lambda: _Connection(server, loop=asyncio.get_running_loop(), **options)


def _state(desk: Desk) -> list[web.AbstractRouteDef]:
    """The calls that tell how the process is, and the one that ends it."""

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

    async def openapi(_: web.Request) -> web.Response:
        return json_reply(calls.describe(__version__, shared=desk.config["redis"]["url"] is not None))

    async def drain(_: web.Request) -> web.Response:
        desk.drain()
        return json_reply({"draining": True}, 202)

    return [
        web.get("/livez", livez), web.get("/readyz", readyz), web.get("/metrics", metrics),
        web.get("/admin/stats", stats), web.get("/admin/config", config), web.get("/admin/openapi.json", openapi),
        web.post("/admin/drain", drain),
    ]  # fmt: skip


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        reply = error_reply(error.status, _CODES.get(error.status, "invalid_request"), error.reason)
        if "Allow" in error.headers:
            reply.headers["Allow"] = error.headers["Allow"]
        return reply
    except web.RequestPayloadError:
        reply = error_reply(400, "invalid_request", "The request body could not be read.")
        reply.force_close()
        return reply
    except Exception as error:  # noqa: BLE001 - whatever it is, the operator gets an answer of the same form
        log.error("an admin call failed inside the proxy: %s", place_of(error))
        return error_reply(500, "internal_error", "The proxy failed.")
