"""The admin calls that tell of long work, and end it. What it was given is told by none of them."""

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from cacheproxy.engine.jobs import Job, Jobs, Refusal, Work
from cacheproxy.http.replies import error_reply, json_reply


def routes(jobs: Jobs) -> Sequence[web.AbstractRouteDef]:
    """``GET /admin/jobs``, ``GET`` and ``DELETE /admin/jobs/{id}``."""

    async def every(_: web.Request) -> web.Response:
        return json_reply({"jobs": [row(job) for job in jobs.all()]})

    async def show(request: web.Request) -> web.Response:
        return _told(jobs.find(request.match_info["id"]))

    async def cancel(request: web.Request) -> web.Response:
        return _told(await jobs.cancel(request.match_info["id"]))

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


def _told(job: Job | None) -> web.Response:
    if job is None:
        return error_reply(404, "not_found", "No job is known under this id.")
    return json_reply({**row(job), "result": job.result})
