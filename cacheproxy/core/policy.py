"""May we look, may we keep: every rule in one place, each "no" a `Reason`. None means yes."""

from typing import Any

from cacheproxy.core import coding, responses, rules
from cacheproxy.core import fields as http_fields
from cacheproxy.core.controls import Controls
from cacheproxy.core.model import Ask, Endpoint, Fields, Form
from cacheproxy.core.outcome import Reason
from cacheproxy.core.rules import Mode

ENDPOINTS = {
    (b"/v1/chat/completions", "POST"): Endpoint.CHAT,
    (b"/v1/completions", "POST"): Endpoint.COMPLETIONS,
    (b"/v1/responses", "POST"): Endpoint.RESPONSES,
    (b"/v1/embeddings", "POST"): Endpoint.EMBEDDINGS,
    (b"/v1/rerank", "POST"): Endpoint.RERANK,
    (b"/v1/score", "POST"): Endpoint.SCORE,
    (b"/v1/models", "GET"): Endpoint.MODELS,
}
"""The operations whose answers are cached, by path and method."""

ASKED_FOR_USAGE = frozenset({Endpoint.CHAT, Endpoint.COMPLETIONS})
"""Those whose streams tell their usage only if they are asked for it (``stream_options.include_usage``)."""

NEGATIVE = frozenset({400, 404, 422})
"""Client errors that the same request gets again, as long as the backend stays what it is."""

KEPT_VARIANTS = frozenset({
    b"accept", b"accept-encoding", b"origin", b"host", *http_fields.CREDENTIALS,
})  # fmt: skip
"""Members of a backend's ``Vary`` that do not matter: the scope or the stored form covers them already."""


_LOOKS = frozenset({"GET", "HEAD", "OPTIONS", "DELETE", "TRACE"})


def is_work(method: str, target: bytes, free: rules.Globs = ()) -> bool:
    """Whether a request is work for a backend, and so takes a slot. `free`: paths of requests that are none."""
    if method in _LOOKS:
        return False
    path = target.partition(b"?")[0].decode("latin-1")
    return not any(pattern.match(path) for pattern in free)


def endpoint_of(method: str, target: bytes) -> Endpoint | None:
    """The cacheable operation that a request line names, if it names one."""
    return ENDPOINTS.get((target.partition(b"?")[0], method))


def may_look_head(fields: Fields, wishes: Controls, *, off: bool) -> Reason | None:
    """Whether a request with this head, to a cacheable path, may be looked up at all. `off`: nothing in its body
    could switch the layer on."""
    if off:
        return Reason.CACHE_OFF
    if wishes.no_store:
        return Reason.NO_STORE
    if coding.plain_after(http_fields.tokens(fields, b"content-encoding")) is None:
        return Reason.ENCODED_REQUEST
    return None


def may_look(endpoint: Endpoint, body: dict[str, Any], wishes: Controls, mode: Mode) -> Reason | None:
    """Whether a request whose body has been read may be looked up."""
    if mode is Mode.OFF:
        return Reason.CACHE_OFF
    if wishes.no_store:
        return Reason.NO_STORE
    if mode is Mode.OPT_IN and not wishes.opted_in:
        return Reason.NOT_OPTED_IN
    return responses.trouble_of_request(body) if endpoint is Endpoint.RESPONSES else None


def is_personal(endpoint: Endpoint, body: dict[str, Any]) -> bool:
    """Whether an answer is the caller's own in every scope: what one may use, and what the backend stores for one."""
    return endpoint is Endpoint.MODELS or (endpoint is Endpoint.RESPONSES and body.get("store") is not False)


def may_keep_head(ask: Ask, status: int, fields: Fields, *, negative: bool = False) -> Reason | None:
    """Whether an answer with this head may be kept once its body has proven complete. `negative`: client errors
    that will be the same again may be kept too."""
    form = form_of(fields)
    if status != 200:
        if not (negative and status in NEGATIVE):
            return Reason.STATUS
        if form is not Form.JSON:
            return Reason.CONTENT_TYPE
    elif form is None:
        return Reason.CONTENT_TYPE
    elif (form is Form.EVENTS) != ask.stream:
        return Reason.MODE_MISMATCH
    if b"no-store" in http_fields.tokens(fields, b"cache-control"):
        return Reason.RESPONSE_NO_STORE
    for name in http_fields.tokens(fields, b"vary"):
        if name == b"*" or (name not in KEPT_VARIANTS and not http_fields.is_keyed(name)):
            return Reason.VARY
    return None


def form_of(fields: Fields) -> Form | None:
    """How a body with these fields is to be read, by its media type."""
    media = (http_fields.first(fields, b"content-type") or b"").partition(b";")[0].strip().lower()
    if media == b"text/event-stream":
        return Form.EVENTS
    if media == b"application/json" or media.endswith(b"+json"):
        return Form.JSON
    return None
