"""The admin calls that tell of long work, and end it. What it was given is told by none of them."""

from collections.abc import Sequence
from typing import Any

import orjson
from aiohttp import web

from cacheproxy.core import fields as http_fields
from cacheproxy.core.deferral import Reply
from cacheproxy.engine.deferral import Known, Vault
from cacheproxy.engine.jobs import Job, Jobs, Refusal, State, Work
from cacheproxy.errors import Trouble
from cacheproxy.http.replies import error_reply, json_reply

DEFERRED = "deferred"


def routes(jobs: Jobs, vault: Vault, *, texts: bool) -> Sequence[web.AbstractRouteDef]:
    """``GET /admin/jobs``, ``GET`` and ``DELETE /admin/jobs/{id}``. `vault`: requests that were kept for later, which
    are told of one by one; `texts`: their answers too."""

    async def every(_: web.Request) -> web.Response:
        return json_reply({"jobs": [row(job) for job in jobs.all()]})

    async def show(request: web.Request) -> web.Response:
        name = request.match_info["id"]
        job = jobs.find(name)
        return _told(job) if job is not None else await _deferred(name)

    async def cancel(request: web.Request) -> web.Response:
        name = request.match_info["id"]
        job = await jobs.cancel(name)
        if job is not None:
            return _told(job)
        reply = await _deferred(name)
        if reply.status == 200:
            try:
                await vault.store.forget(name)
            except Trouble:
                return _unavailable()
        return reply

    async def _deferred(name: str) -> web.Response:
        try:
            known = await vault.find(name)
        except Trouble:
            return _unavailable()
        return _told(None) if known is None else json_reply(_deferred_row(known, texts=texts))

    return [web.get("/admin/jobs", every), web.get("/admin/jobs/{id}", show), web.delete("/admin/jobs/{id}", cancel)]


def begin(jobs: Jobs, kind: str, work: Work, size: int) -> web.Response:
    """The reply to an order for a job that holds `size` bytes."""
    job = jobs.begin(kind, work, size)
    if isinstance(job, Job):
        reply = json_reply(row(job), 202)
        reply.headers["Location"] = f"/admin/jobs/{job.id}"
        return reply
    if job is Refusal.TOO_LARGE:
        return error_reply(413, "request_too_large", "The request body is larger than `jobs.max_bytes`.")
    if job is Refusal.FULL:
        reply = error_reply(429, "queue_full", "As many jobs as are allowed have not ended yet.")
    else:
        reply = error_reply(503, "draining", "The proxy is shutting down.")
    reply.headers["Retry-After"] = "5"
    return reply


def row(job: Job) -> dict[str, Any]:
    """A job as it is listed."""
    return {
        "id": job.id, "kind": job.kind, "state": job.state.value, "progress": dict(job.counts),
        "error": None if job.error is None else {"code": job.error[0], "message": job.error[1]},
        "created_at": job.created_at, "started_at": job.started_at, "ended_at": job.ended_at,
    }  # fmt: skip


def _deferred_row(known: Known, *, texts: bool) -> dict[str, Any]:
    kept, reply = known.row, known.reply
    failed = reply is not None and kept.state.value == State.FAILED.value
    return {
        "id": kept.id, "kind": DEFERRED, "state": kept.state.value, "progress": {"attempts": kept.attempts},
        "error": _error(reply) if reply is not None and failed else None,
        "created_at": kept.created_at, "started_at": kept.started_at or None, "ended_at": kept.ended_at or None,
        "result": None if reply is None else _answer(reply, texts=texts),
    }  # fmt: skip


def _answer(reply: Reply, *, texts: bool) -> dict[str, Any]:
    kind = (http_fields.first(reply.fields, b"content-type") or b"").decode("latin-1")
    told: dict[str, Any] = {"status": reply.status, "content_type": kind, "bytes": len(reply.body)}
    if texts and http_fields.first(reply.fields, b"content-encoding") is None:
        told["body"] = reply.body.decode("utf-8", "replace")
    return told


def _error(reply: Reply) -> dict[str, str]:
    """The code and message that an error in the OpenAI form has."""
    try:
        told = orjson.loads(reply.body)["error"]
        code, message = told["code"], told["message"]
    except (ValueError, LookupError, TypeError):
        code = message = None
    return {
        "code": code if isinstance(code, str) else str(reply.status),
        "message": message if isinstance(message, str) else f"The backend answered with status {reply.status}.",
    }


def _told(job: Job | None) -> web.Response:
    if job is None:
        return error_reply(404, "not_found", "No job is known under this id.")
    return json_reply({**row(job), "result": job.result})


def _unavailable() -> web.Response:
    reply = error_reply(503, "unavailable", "What is kept cannot be read now.")
    reply.headers["Retry-After"] = "1"
    return reply
