"""The admin calls that remove answers. When one returns 200 nothing that is meant is served any more, also after a
crash; it leaves the store soon after, or before if the call is told to wait."""

import logging
from collections.abc import Sequence
from dataclasses import asdict

import orjson
from aiohttp import web

from cacheproxy.core import removal
from cacheproxy.core.removal import Order, Removal, Selector
from cacheproxy.engine.purge import Purge, Purged
from cacheproxy.errors import Trouble
from cacheproxy.http.replies import error_reply, json_reply

log = logging.getLogger("cacheproxy.http")


def routes(purge: Purge) -> Sequence[web.AbstractRouteDef]:
    """``POST /admin/purge`` and ``DELETE /admin/entries/{id}``."""

    async def select(request: web.Request) -> web.Response:
        try:
            order = removal.read(orjson.loads(await request.read()))
        except orjson.JSONDecodeError:
            return error_reply(400, "invalid_json", "The request body is not valid JSON.")
        if isinstance(order, removal.BadOrder):
            return error_reply(400, "invalid_request", f"{order.name} must be {order.expected}.", order.name)
        purged = await _carry_out(purge, order)
        return _trouble() if purged is None else json_reply(asdict(purged))

    async def delete(request: web.Request) -> web.Response:
        order = Order(Selector(entry_ids=frozenset({request.match_info["id"]})), Removal.HARD)
        purged = await _carry_out(purge, order)
        if purged is None:
            return _trouble()
        if not purged.matched:
            return error_reply(404, "not_found", "No answer is stored under this id.")
        return json_reply(asdict(purged))

    return [web.post("/admin/purge", select), web.delete("/admin/entries/{id}", delete)]


async def _carry_out(purge: Purge, order: Order) -> Purged | None:
    """None if it could not be done to its end."""
    try:
        return await purge.carry_out(order)
    except Trouble as error:
        log.warning("a purge was not carried out to its end: %s", error)
        return None


def _trouble() -> web.Response:
    reply = error_reply(503, "store_trouble", "It is not certain that the answers stay removed; order it again.")
    reply.headers["Retry-After"] = "1"
    return reply
