"""What ``check`` and ``doctor`` report, as plain data."""

import asyncio
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

import orjson

from cacheproxy.core.model import Unfit
from cacheproxy.core.rules import Reach
from cacheproxy.errors import AnswerError, Trouble, UpstreamCut
from cacheproxy.http.answering import Answering
from cacheproxy.http.backend import Backends, Patience
from cacheproxy.http.upstream import Upstream
from cacheproxy.ports import Outbound
from cacheproxy.schema import Settings, names
from cacheproxy.schema.knowledge import WatchSettings
from cacheproxy.settings import Resolved
from cacheproxy.stores.folder import Folder
from cacheproxy.wiring import CACHE_FILE, embedding, redacted

LEAST_FREE = 64 * 2**20
LARGEST_LIST = 4 * 2**20
REDIS_SECONDS = 5.0
MODEL_SECONDS = 60.0


def configuration(resolved: Resolved) -> list[dict[str, Any]]:
    """Every value with its origin, secrets masked."""
    rows = []
    plain = redacted(resolved.settings)
    for name in (name for name in names() if "[]" not in name):
        value: Any = plain
        for part in name.split("."):
            value = value[part]
        rows.append({"name": name, "value": value, "origin": resolved.origins.get(name, "default")})
    return rows


def examine(settings: Settings) -> list[dict[str, Any]]:
    """What the proxy needs, part by part: {part, ok, message}."""
    findings = [asyncio.run(_backend(upstream.url, settings)) for upstream in settings.upstreams]
    findings.append(_disk(settings))
    findings.extend(asyncio.run(_redis(settings)))
    findings.extend(_watched(settings, one) for one in settings.kb.watch)
    findings.append(asyncio.run(_model(settings)))
    return findings


def _finding(part: str, ok: bool, message: str) -> dict[str, Any]:
    return {"part": part, "ok": ok, "message": message}


async def _backend(url: str, settings: Settings) -> dict[str, Any]:
    upstream = Upstream(url)
    part = f"backend {upstream.url}"
    backends = Backends([upstream], Patience(settings.limits.connect_timeout, 10.0, 10.0))
    try:
        reply = await backends.send(Outbound("GET", b"/v1/models", ((b"Accept", b"application/json"),), None))
    except AnswerError as error:
        why = f" ({error.__cause__})" if error.__cause__ is not None else ""
        return _finding(part, False, f"{error.message.rstrip('.')}{why}; is it running, and is the URL right?")
    body = await _beginning(reply)
    reply.close()
    await backends.close()
    if reply.status in (401, 403):
        return _finding(part, True, f"answers, and asks for a credential (GET /v1/models: {reply.status})")
    if reply.status == 404:
        return _finding(
            part, True, "answers, but has no /v1/models: the last verdict on a credential holds for access.grace"
        )
    if reply.status >= 300:
        return _finding(part, False, f"GET /v1/models gives {reply.status}; is this an OpenAI-compatible server?")
    if not _is_list(body):
        return _finding(part, False, "GET /v1/models gives no list of models; is this an OpenAI-compatible server?")
    return _finding(part, True, f"answers (GET /v1/models: {reply.status})")


async def _beginning(reply: Answering) -> bytes:
    """The body, up to a size that any list of models is below."""
    parts: list[bytes] = []
    try:
        while sum(map(len, parts)) < LARGEST_LIST and (data := await reply.read()):
            parts.append(data)
    except (UpstreamCut, AnswerError):
        return b""
    return b"".join(parts)


def _is_list(body: bytes) -> bool:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(document, dict) and isinstance(document.get("data", document.get("models")), list)


async def _redis(settings: Settings) -> list[dict[str, Any]]:
    if settings.redis.url is None:
        return [_finding("redis", True, "not used: answers are kept by each proxy for itself")]
    from cacheproxy.stores.redis_calls import Calls
    from cacheproxy.stores.redis_link import Link
    from cacheproxy.stores.redis_survey import remarks
    from cacheproxy.wiring import shared

    target = shared.target(settings)
    part = f"redis {target.shown}"
    link = Link(target, shared.terms(settings))
    try:
        async with asyncio.timeout(REDIS_SECONDS):
            survey = await link.survey()
            events = await _events(settings, Calls(link))
    except (Trouble, TimeoutError) as error:
        return [_finding(part, False, f"{str(error) or 'no answer'}; is it running, and are URL and password right?")]
    finally:
        await link.close()
    search = f"search {survey.search}" if survey.search else "no search"
    told = [_finding(part, remark.level != "error", remark.text) for remark in remarks(survey, target)]
    return [_finding(part, True, f"answers ({survey.server} {survey.version}, {search})"), *told, events]


async def _events(settings: Settings, calls: Any) -> dict[str, Any]:
    """The stream on which versions of knowledge bases are told."""
    from cacheproxy.stores.redis_events import STREAM
    from cacheproxy.stores.redis_events_rights import GRANT, rights

    part = "kb.events"
    if not settings.kb.events:
        return _finding(part, True, "not used: no versions are read from Redis (`kb.events`)")
    try:
        found = await rights(calls, settings.redis.prefix)
    except Trouble as error:
        return _finding(
            part, False, f"what may be done with {STREAM} cannot be told ({error}); grant {GRANT} +eval +evalsha"
        )
    if found.denied:
        names = ", ".join(found.denied)
        return _finding(
            part, False,
            f"the user of Redis may not use {names} on {STREAM}, so that nothing is served that rests on a knowledge "
            f"base: grant {GRANT}, or set `kb.events: off`",
        )  # fmt: skip
    if not found.is_stream:
        return _finding(part, False, f"{STREAM} is no stream: delete it or rename it, or set `kb.events: off`")
    if not found.there:
        return _finding(part, True, f"{STREAM} can be read; nothing was told on it yet")
    waiting = "no proxy has read it yet" if found.waiting is None else f"{found.waiting} events being carried out"
    return _finding(part, True, f"{STREAM} can be read ({waiting})")


def _watched(settings: Settings, one: WatchSettings) -> dict[str, Any]:
    """A folder that is a knowledge base."""
    part, told = f"kb.watch {one.name}", settings.kb
    try:
        files, size = Folder(Path(one.path), most_files=told.max_files, most_bytes=told.max_bytes).measure()
    except Trouble as error:
        return _finding(part, False, f"{error}; until it can be, nothing is served that rests on it")
    if not files:
        return _finding(part, True, f"{one.path} has no files (names that begin with a dot do not count)")
    return _finding(part, True, f"{one.path} can be read: {files} files, {_mib(size)} MiB")


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f}"


async def _model(settings: Settings) -> dict[str, Any]:
    if not embedding.is_wanted(settings):
        if settings.semantic.mode is Reach.OFF:
            return _finding("model", True, "not used: answers by meaning are off (`semantic.mode`)")
        return _finding("model", True, f"not used: for answers by meaning {embedding.EXTRA}")
    part = f"model {settings.semantic.model}"
    nearby = settings.model_copy(update={"semantic": settings.semantic.model_copy(update={"download": False})})
    try:
        embedder = embedding.embedder(nearby)
    except Trouble as trouble:
        if trouble.kind == "missing" and settings.semantic.download and settings.semantic.model_path is None:
            return _finding(part, True, "not on this machine: downloaded from the hub when the proxy starts")
        return _finding(part, False, str(trouble))
    try:
        began = time.monotonic()
        async with asyncio.timeout(MODEL_SECONDS):
            await embedder.warm()
            found = await embedder.embed("How do I change my address?", b"")
    except (Trouble, TimeoutError) as error:
        return _finding(part, False, str(error) or "does not answer in time")
    finally:
        await embedder.close()
    if isinstance(found, Unfit):
        return _finding(part, False, f"cannot embed an English question ({found.name.lower()})")
    return _finding(part, True, f"works ({len(found)} dimensions, ready after {time.monotonic() - began:.1f} s)")


def _disk(settings: Settings) -> dict[str, Any]:
    if settings.redis.url is not None:
        return _finding("disk", True, "not used: answers are kept in Redis")
    if settings.store.data_dir == "none":
        return _finding("disk", True, "not used: answers are kept in memory only and are gone after a restart")
    directory = Path(settings.store.data_dir).absolute()
    part = f"disk {directory}"
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe = directory / ".probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        return _finding(part, False, f"cannot be written ({error.strerror}); choose another --data-dir")
    free = shutil.disk_usage(directory).free
    if free < LEAST_FREE:
        return _finding(part, False, f"only {free // 2**20} MiB free; make room or choose another --data-dir")
    file = directory / CACHE_FILE
    if file.exists():
        try:
            connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
            count = connection.execute("SELECT count(*) FROM entry").fetchone()[0]
            connection.close()
        except sqlite3.Error as error:
            return _finding(
                part, False, f"{CACHE_FILE} cannot be read ({error}); it will be set aside at the next start"
            )
        return _finding(part, True, f"{count} answers kept, {free // 2**30} GiB free")
    return _finding(part, True, f"writable, {free // 2**30} GiB free")
