"""What ``explain`` tells of one request: its key, what normalisation changed, and whether it may be served. As data.

Uses the very binder that serves, so what is said here is what happens.
"""

import secrets
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cacheproxy.core import canonical, codec, controls, explanation, fields, freshness, key, policy, splice, usage
from cacheproxy.core.model import Endpoint, Entry, Fields
from cacheproxy.core.outcome import Reason
from cacheproxy.core.question import question
from cacheproxy.core.rules import Mode, Reach, Share
from cacheproxy.core.survey import place, survey
from cacheproxy.engine.binder import Binder, wishes_of
from cacheproxy.engine.bound import Bound, Head, Unbound
from cacheproxy.engine.hints import with_hint
from cacheproxy.engine.keeper import lifetime
from cacheproxy.engine.passage import forwarded
from cacheproxy.engine.prefixed import Prefix
from cacheproxy.errors import AnswerError, ConfigurationError
from cacheproxy.http.upstream import Upstream
from cacheproxy.schema import Settings
from cacheproxy.wiring import CACHE_FILE, SECRET_FILE, embedding, terms
from cacheproxy.wiring.house import realm


def explain(settings: Settings, method: str, path: str, lines: Sequence[str], body: bytes) -> dict[str, Any]:
    """What would become of a request. `lines`: header fields as ``Name: value``. Raises `ConfigurationError`."""
    head_fields = tuple(_field(line) for line in lines)
    secret, lasting = _secret(settings)
    upstreams = [Upstream(u.url, u.weight) for u in settings.upstreams]
    binder = Binder(secret, terms.terms(settings, realm(settings, upstreams)))
    head = Head(method, path.encode("utf-8"), head_fields, binder.credential(head_fields))
    endpoint = policy.endpoint_of(method, head.target)
    if endpoint is None:
        return {"endpoint": None, "exact": _no(Reason.UNCACHEABLE_PATH), "forwarded": _passes(head_fields)}
    try:
        wishes = wishes_of(head_fields, None)
        refusal = policy.may_look_head(head_fields, wishes, off=binder.off)
        if refusal is not None:
            unlooked = binder.unread(head, endpoint, body, wishes)
            outgoing, found = unlooked.outgoing, unlooked.prefix
            goes = _with_hints(settings, secret, outgoing.plain, found)
            return {
                "endpoint": endpoint.value, "exact": _no(refusal), "prefix": _prefix(settings, found),
                "forwarded": _forwarded(settings, body, goes, head_fields),
            }  # fmt: skip
        bound = binder.bind(head, endpoint, body)
    except AnswerError as error:
        said = {"status": error.status, "code": error.code, "message": error.message}
        return {"endpoint": endpoint.value, "error": said}
    if isinstance(bound, Unbound):
        goes = _with_hints(settings, secret, bound.outgoing.plain, bound.prefix)
        return {
            "endpoint": endpoint.value, "exact": _no(bound.reason), "rules": list(bound.rows),
            "prefix": _prefix(settings, bound.prefix), "forwarded": _forwarded(settings, body, goes, head_fields),
        }  # fmt: skip
    goes = _with_hints(settings, secret, _asking(settings, bound), bound.prefix)
    return {
        **_bound(settings, bound, lasting=lasting),
        "prefix": _prefix(settings, bound.prefix),
        "forwarded": _forwarded(settings, body, goes, head_fields),
    }


def _prefix(settings: Settings, found: Prefix | None) -> dict[str, Any]:
    """What layer 1 changes, and what it leaves in the prefix that is likely to change from call to call."""
    if found is None:
        return {"changes": [], "volatile": []}
    names = terms.prefix_rules(settings).nonce_names
    left = [(one, place(one)) for one in survey(found.endpoint, found.fields, names)]
    rows = [
        {"pointer": pointer, "line": line, "column": column, "kind": one.kind.value, "rule": one.rule,
         "text": one.block.text[one.start : one.end], "bytes_behind": one.behind}
        for one, (pointer, line, column) in left
    ]  # fmt: skip
    return {"changes": [asdict(change) for change in found.changes], "volatile": rows}


def _with_hints(settings: Settings, secret: bytes, plain: bytes, found: Prefix | None) -> bytes:
    """The body with the hints that are switched on, as a backend gets it that is not known to refuse them."""
    for name, value in terms.hints(settings, secret).values(found).items():
        plain = with_hint(plain, name, value)
    return plain


def _bound(settings: Settings, bound: Bound, *, lasting: bool) -> dict[str, Any]:
    ask, endpoint = bound.ask, bound.ask.endpoint
    ignored = terms.terms(settings, b"").ignored
    changes = [] if endpoint is Endpoint.MODELS else explanation.changes(endpoint, bound.body, ignored)
    keyed = [f"{n.decode('latin-1')}: {v.decode('latin-1')}" for n, v in _keyed(settings, bound)]
    return {
        "endpoint": endpoint.value,
        "model": ask.model,
        "entry_id": key.entry_id(ask.key),
        "entry_id_lasts": lasting,
        "scope": (bound.settled.scope or settings.access.scope).value,
        "namespace": bound.controls.namespace,
        "knowledge": list(controls.decoded(bound.controls.knowledge)),
        "extracted": _extracted(bound),
        "rules": list(bound.rows),
        "canonical": bound.form.decode("utf-8", "replace"),
        "keyed_headers": keyed,
        "changes": [{"pointer": c.pointer, "before": c.before, "after": c.after, "why": c.why} for c in changes],
        "inputs": [key.entry_id(item.key) for item in bound.items] if len(bound.items) > 1 else [],
        "exact": _exact(settings, bound),
        "keep": _keep(settings, bound),
        "semantic": _semantic(settings, bound, ignored),
        "stored": [_stored(settings, bound, name) for name in _names(bound)],
    }


def _extracted(bound: Bound) -> dict[str, list[str]]:
    """What of all that was found in the body (`kb.extract` and the rules)."""
    found = bound.extracted
    return {"documents": list(found.documents), "tags": list(found.tags), "kb": list(found.kb)}


def _semantic(settings: Settings, bound: Bound, ignored: canonical.Ignored) -> dict[str, Any]:
    """Whether a like question is looked for, and from which similarity on; what is found only a proxy knows."""
    reach = settings.semantic.mode
    if not embedding.is_wanted(settings) and reach is not Reach.OFF:
        return {"serves": False, "why": f"the semantic layer needs its extra: {embedding.EXTRA}"}
    if bound.settled.semantic is False or (reach is Reach.OFF and not bound.settled.semantic):
        return {"serves": False, "why": "the semantic layer is off for this request (`semantic.mode` or a rule)"}
    found = question(bound.ask.endpoint, bound.body, ignored)
    if isinstance(found, Reason):
        return _no(found)
    told = settings.semantic.threshold if bound.settled.threshold is None else bound.settled.threshold
    threshold = max(told, bound.controls.semantic or 0.0)
    if threshold > 1:
        return {"serves": False, "why": "the request says `X-Cache-Semantic: off`"}
    return {"serves": reach is not Reach.SHADOW, "question": found.text, "threshold": threshold}


def _names(bound: Bound) -> list[bytes]:
    if len(bound.items) > 1:
        return [item.key for item in bound.items]
    return [key.variant(bound.base, number) for number in range(bound.variants)]


def _keyed(settings: Settings, bound: Bound) -> list[tuple[bytes, bytes]]:
    return fields.keyed(bound.head.fields, terms.terms(settings, b"").volatile_headers)


def _exact(settings: Settings, bound: Bound) -> dict[str, Any]:
    if bound.mode is Mode.WRITE_ONLY:
        return {"mode": bound.mode.value, **_no(Reason.WRITE_ONLY)}
    if bound.mode is Mode.SHADOW:
        return {"mode": bound.mode.value, **_no(Reason.SHADOW)}
    if bound.controls.no_cache:
        return {"mode": bound.mode.value, **_no(Reason.NO_CACHE)}
    proof = "once the backend has accepted the credential"
    shared = (bound.settled.scope or settings.access.scope) is not Share.CREDENTIAL
    return {"mode": bound.mode.value, "serves": True, "why": f"to {'its group' if shared else 'this caller'}, {proof}"}


def _keep(settings: Settings, bound: Bound) -> dict[str, Any]:
    if bound.mode is Mode.READ_ONLY:
        return {"keeps": False, "reason": Reason.READ_ONLY.word, "why": Reason.READ_ONLY.explanation}
    ttl = lifetime(terms.keeping(settings), bound)
    if ttl <= 0:
        return {"keeps": False, "reason": Reason.ZERO_TTL.word, "why": Reason.ZERO_TTL.explanation}
    return {"keeps": True, "ttl": ttl, "tags": list(bound.tags), "variants": bound.variants}


def _stored(settings: Settings, bound: Bound, name: bytes) -> dict[str, Any]:
    """What the cache file has under a key, looked up without changing it."""
    entry = _entry(settings, name)
    if entry is None or entry.owner != bound.ask.scope.owner:
        return {"entry_id": key.entry_id(name), "state": "absent"}
    now = time.time()
    state = freshness.judge(entry, bound.controls, now, terms.lasting(settings).allowance)
    return {
        "entry_id": key.entry_id(name), "state": state.value, "age": int(now - entry.stored_at),
        "ttl": int(entry.fresh_until - now), "tags": list(entry.tags), "took": round(entry.took, 3),
    }  # fmt: skip


def _entry(settings: Settings, name: bytes) -> Entry | None:
    file = Path(settings.store.data_dir) / CACHE_FILE
    if settings.store.data_dir == "none" or not file.exists():
        return None
    try:
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
        try:
            row = connection.execute("SELECT blob FROM entry WHERE key = ?", (name,)).fetchone()
        finally:
            connection.close()
    except sqlite3.Error:
        return None
    return codec.decode(row[0], name) if row else None


def _asking(settings: Settings, bound: Bound) -> bytes:
    """The body, unpacked, with the wish for a recorded stream's usage."""
    options = bound.body.get("stream_options")
    asks = bound.ask.stream and not bound.ask.wants_usage and isinstance(options, dict | None)
    if asks and settings.stream.ask_usage and bound.ask.endpoint in policy.ASKED_FOR_USAGE:
        return usage.ask(bound.outgoing.plain, options)
    return bound.outgoing.plain


def _forwarded(settings: Settings, came: bytes, goes: bytes, head_fields: Fields) -> dict[str, Any]:
    """What of the request the backend would see otherwise than it came, byte for byte."""
    told = _passes(head_fields)
    if goes == came or not settings.upstreams:
        return told
    old, new = ({m.name: body[m.start : m.end] for m in splice.walk(body)} for body in (came, goes))
    removed = [_text(old[name]) for name in old if name not in new]
    added = [_text(new[name]) for name in new if name not in old]
    changed = [[_text(old[name]), _text(new[name])] for name in old if name in new and old[name] != new[name]]
    return {**told, "body": {"identical": False, "removed": removed, "added": added, "changed": changed}}


def _passes(head_fields: Fields) -> dict[str, Any]:
    kept = {name.lower() for name, _ in forwarded(head_fields)}
    removed = sorted({n.decode("latin-1") for n, _ in head_fields if n.lower() not in kept})
    return {"body": {"identical": True}, "headers_removed": removed}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _no(reason: Reason) -> dict[str, Any]:
    return {"serves": False, "reason": reason.word, "why": reason.explanation}


def _field(line: str) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise ConfigurationError(f"a header is written `Name: value`, not `{line}`")
    return name.strip().encode("latin-1", "replace"), value.strip().encode("utf-8")


def _secret(settings: Settings) -> tuple[bytes, bool]:
    """The secret of the data directory, and whether ids made with it last; never makes one."""
    path = Path(settings.store.data_dir) / SECRET_FILE
    if settings.store.data_dir != "none" and path.exists() and len(known := path.read_bytes()) == key.SECRET_BYTES:
        return known, True
    return secrets.token_bytes(key.SECRET_BYTES), False
