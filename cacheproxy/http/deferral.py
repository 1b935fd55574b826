"""Refused requests that are kept: the answer that says so, and what their callers ask for later under a path of the
proxy listener.

Nobody but the credential that asked is told anything: to all others there is no such request.
"""

import hmac
from collections.abc import Awaitable, Callable

import orjson

from cacheproxy.core import fields as http_fields
from cacheproxy.core.deferral import Reply, State
from cacheproxy.core.past import Past
from cacheproxy.core.removal import Removal
from cacheproxy.engine.authority import Authority
from cacheproxy.engine.binder import Binder
from cacheproxy.engine.deferral import Known, Taken, Taking, Vault, error_of
from cacheproxy.engine.served import Served
from cacheproxy.errors import AnswerError, Refused, Trouble
from cacheproxy.http import limits
from cacheproxy.http.handlers import Answers
from cacheproxy.http.incoming import Incoming

ADMIN_PATH = "/admin/jobs"
LOOK_AGAIN = 5
"""Seconds after which whoever asks too early may ask again."""
DRIFT = 5.0
"""Seconds by which the clocks of replicas may differ."""
_PHRASES = {
    200: b"OK",
    410: b"Gone",
    202: b"Accepted",
    204: b"No Content",
    404: b"Not Found",
    405: b"Method Not Allowed",
}
_LINES = b"Content-Type: application/json\r\nCache-Control: private, no-store\r\nVary: Authorization\r\n"


class Front:
    """The pipeline's answers; in place of some refusals the word that the request is kept. `path`: where callers ask
    after theirs, None for nowhere; `past` tells of the removals so far, and raises `Trouble`; `admin`: the URL of the
    admin listener, empty if it is not known."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, *, pipeline: Answers, taking: Taking, vault: Vault, binder: Binder, authority: Authority,
        past: Callable[[], Awaitable[Past]], path: str | None,
    ) -> None:  # fmt: skip
        self._pipeline = pipeline
        self._taking = taking
        self._vault = vault
        self._binder = binder
        self._authority = authority
        self._past = past
        self._path = path
        self._below = b"" if path is None else f"{path}/".encode("ascii")
        self.admin = ""

    async def answer(self, call: Incoming) -> Served:
        """The answer to `call`. Raises `AnswerError`; the caller of this must close what it gets."""
        if self._below and call.target.startswith(self._below):
            return await self._asked_after(call)
        try:
            return await self._pipeline.answer(call)
        except Refused as refusal:
            taken = await self._taking.take(call, refusal)
            if taken is None:
                raise
            return self._accepted(taken)

    def _accepted(self, taken: Taken) -> Served:
        """RFC 7240 section 4.1."""
        where = f"{self.admin}{ADMIN_PATH}/{taken.id}" if self._path is None else f"{self._path}/{taken.id}"
        more = f"Location: {where}\r\nRetry-After: {taken.retry_after}\r\n"
        if taken.asked:
            more += "Preference-Applied: respond-async\r\n"
        return _json(202, {"id": taken.id, "status": State.QUEUED.value, "location": where}, more)

    async def _asked_after(self, call: Incoming) -> Served:
        await call.whole()  # what follows on this connection begins behind it
        if call.method not in ("GET", "HEAD", "DELETE"):
            return _error(error_of(405, "method_not_allowed", "Use GET or DELETE."), "Allow: GET, HEAD, DELETE\r\n")
        name = call.target[len(self._below) :].partition(b"?")[0].decode("latin-1")
        owner = self._binder.credential(call.fields)
        try:
            known = await self._vault.find(name)
            if known is None or not hmac.compare_digest(known.row.owner, owner):
                return _error(error_of(404, "not_found", "There is no such request."))
            if call.method == "DELETE":
                await self._vault.store.forget(name)
                return Served(204, _PHRASES[204], _LINES.partition(b"\r\n")[2], b"", 0)
            if known.reply is not None and known.reply.status < 400 and await self._is_purged(known.row.started_at):
                error = error_of(410, "purged", "Answers were purged since it was given; ask again.")
                error.retry = True
                return _error(error)
        except Trouble:
            error = error_of(503, "unavailable", "What is kept cannot be read now.")
            error.retry, error.retry_after = True, 1
            return _error(error)
        if known.reply is None:
            told = {"id": name, "status": known.row.state.value, "created_at": known.row.created_at}
            return _json(202, told, f"Retry-After: {LOOK_AGAIN}\r\n")
        return await self._reply(call, known, known.reply, owner)

    async def _is_purged(self, started_at: float) -> bool:
        """Whether an answer that was asked for then may have been meant by a removal since. What it rests on is not
        kept with it; where it was not meant, the same request is a hit."""
        past = await self._past()
        since = started_at - DRIFT
        return not past.reaches(started_at) or any(
            was.now >= since for was in past.removals if was.removal is not Removal.SOFT
        )

    async def _reply(self, call: Incoming, known: Known, reply: Reply, owner: bytes) -> Served:
        """What came of it, as long as the backend accepts the caller."""
        if reply.status < 400:
            if await self._authority.admit(owner, call.fields, known.row.started_at) is None:
                return _error(error_of(404, "not_found", "There is no such request."))
        phrase = _PHRASES.get(reply.status, b"Answer")
        return Served(reply.status, phrase, http_fields.render(reply.fields), reply.body, len(reply.body))


def _json(status: int, document: object, more: str) -> Served:
    body = orjson.dumps(document)
    return Served(status, _PHRASES[status], _LINES + more.encode("ascii"), body, len(body))


def _error(error: AnswerError, more: str = "") -> Served:
    body = limits.error_body(error)
    phrase = _PHRASES.get(error.status, b"Error")
    return Served(error.status, phrase, limits.error_lines(error) + more.encode("ascii"), body, len(body))
