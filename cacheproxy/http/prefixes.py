"""The admin call that tells what is known of the families of prompts."""

from collections.abc import Sequence

from aiohttp import web

from cacheproxy.engine.families import Families
from cacheproxy.http.replies import error_reply, json_reply

USUAL, MOST = 100, 1000


def routes(families: Families) -> Sequence[web.AbstractRouteDef]:
    """``GET /admin/prefixes?limit=``."""

    async def prefixes(request: web.Request) -> web.Response:
        if unknown := request.query.keys() - {"limit"}:
            name = min(unknown)[:64].encode("utf-8", "replace").decode()
            return error_reply(400, "invalid_request", f"{name} must be left out: known is limit.", name)
        limit = _limit(request.query.getall("limit", [str(USUAL)]))
        if limit is None:
            return error_reply(400, "invalid_request", f"limit must be a whole number from 1 to {MOST}.", "limit")
        return json_reply({"families": families.rows(limit), "total": families.summary()})

    return [web.get("/admin/prefixes", prefixes)]


def _limit(given: Sequence[str]) -> int | None:
    text = given[0] if len(given) == 1 else ""
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(MOST))
    return int(text) if is_number and 1 <= int(text) <= MOST else None
