"""The admin call that takes a backend out of service, and puts it back: what runs there goes on, nothing new comes."""

from collections.abc import Sequence
from typing import Any

import orjson
from aiohttp import web

from cacheproxy.core import address
from cacheproxy.http.backend import Backends
from cacheproxy.http.replies import error_reply, json_reply
from cacheproxy.http.upstream import Upstream

_TAKEN = {
    "draining": "true or false", "url": "the URL of a backend, as in the configuration", "force": "true or false",
}  # fmt: skip


def routes(backends: Backends) -> Sequence[web.AbstractRouteDef]:
    """``POST /admin/upstreams/drain``."""

    async def drain(request: web.Request) -> web.Response:
        try:
            order = orjson.loads(await request.read())
        except orjson.JSONDecodeError:
            return error_reply(400, "invalid_json", "The request body is not valid JSON.")
        if isinstance(order, dict) and not order.keys() <= _TAKEN.keys():
            return error_reply(400, "invalid_request", f"Nothing is taken but {', '.join(_TAKEN)}.")
        wrong = _wrong(order)
        if wrong is not None:
            return error_reply(400, "invalid_request", f"{wrong} must be {_TAKEN[wrong]}.", wrong)
        for url in _urls(order.get("url"), backends):
            done = backends.drain(url, on=order["draining"], force=order.get("force", False))
            if done is None:
                return error_reply(404, "not_found", "No backend has this URL.", "url")
            if not done:
                return error_reply(409, "conflict", "This is the last backend that takes requests; `force` drains it.")
        return json_reply({"upstreams": backends.rows()})

    return [web.post("/admin/upstreams/drain", drain)]


def _wrong(order: Any) -> str | None:
    """The name of what is not as it must be. Without `url` all are meant, which is for putting them back only."""
    if not isinstance(order, dict) or not isinstance(order.get("draining"), bool):
        return "draining"
    if not isinstance(order.get("url"), str) and ("url" in order or order["draining"]):
        return "url"
    return None if isinstance(order.get("force", False), bool) else "force"


def _urls(url: str | None, backends: Backends) -> list[str]:
    """Those that are meant, in one spelling."""
    if url is None:
        return [upstream.url for upstream in backends.upstreams]
    return [url if isinstance(address.read(url), str) else Upstream(url).url]
