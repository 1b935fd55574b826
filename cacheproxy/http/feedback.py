"""The admin call by which an operator says that an answer was wrong or right. One that returns 200 has been heeded to
its end, on every replica and on the disk."""

import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson
from aiohttp import web

from cacheproxy.core.model import Endpoint
from cacheproxy.core.question import Question, question
from cacheproxy.engine.feedback import Feedback, Judgement, Verdict
from cacheproxy.errors import Trouble
from cacheproxy.http.replies import error_reply, json_reply

log = logging.getLogger("cacheproxy.http")

_KNOWN = ("entry_id", "verdict", "request")


def routes(feedback: Feedback) -> Sequence[web.AbstractRouteDef]:
    """``POST /admin/feedback`` with ``{entry_id, verdict, request?}``."""

    async def judge(request: web.Request) -> web.Response:
        try:
            given = orjson.loads(await request.read())
        except orjson.JSONDecodeError:
            return error_reply(400, "invalid_json", "The request body is not valid JSON.")
        if (bad := _fault(given)) is not None:
            name, expected = bad
            return error_reply(400, "invalid_request", f"{name} must be {expected}.", name)
        asked = _asked(given["request"]) if given.get("request") is not None else None
        try:
            heeded = await feedback.heed(Judgement(Verdict(given["verdict"]), given["entry_id"], asked))
        except Trouble as error:
            log.warning("feedback was not heeded to its end: %s", error)
            reply = error_reply(503, "store_trouble", "It could not all be carried out; say it again.")
            reply.headers["Retry-After"] = "1"
            return reply
        if heeded is None:
            return error_reply(404, "not_found", "No answer is stored under this id, and none was called wrong.")
        return json_reply({"entry_id": given["entry_id"], "verdict": given["verdict"], **asdict(heeded)})

    return [web.post("/admin/feedback", judge)]


def _fault(given: Any) -> tuple[str, str] | None:
    """What is wrong with the body: the field, and what it must be."""
    if not isinstance(given, dict):
        return "body", "a JSON object"
    if unknown := given.keys() - set(_KNOWN):
        return min(unknown)[:64], f"left out: known are {', '.join(_KNOWN)}"
    if not isinstance(given.get("entry_id"), str) or not given["entry_id"]:
        return "entry_id", "a text, as `X-Cache-Entry-Id` has it"
    if given.get("verdict") not in tuple(Verdict):
        return "verdict", "wrong or right"
    if not isinstance(given.get("request"), dict | None):
        return "request", "the JSON object that was sent, or left out"
    return None


def _asked(body: dict[str, Any]) -> str:
    """The question of a request; empty if it has none, and so never was one by meaning."""
    found = question(Endpoint.CHAT if "messages" in body else Endpoint.RESPONSES, body)
    return found.text if isinstance(found, Question) else ""
