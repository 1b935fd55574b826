"""May we look, may we keep: every rule in one place, each "no" a `Reason`. None means yes."""

from cacheproxy.core import fields as http_fields
from cacheproxy.core.controls import Controls
from cacheproxy.core.model import Ask, Endpoint, Fields, Form
from cacheproxy.core.outcome import Reason

ENDPOINTS = {
    b"/v1/chat/completions": Endpoint.CHAT,
    b"/v1/completions": Endpoint.COMPLETIONS,
}
"""The paths whose answers are cached, for ``POST``."""

KEPT_VARIANTS = frozenset({
    b"accept", b"accept-encoding", b"origin", b"host", *http_fields.CREDENTIALS,
})  # fmt: skip
"""Members of a backend's ``Vary`` that do not matter: the scope or the stored form covers them already."""


def endpoint_of(method: str, target: bytes) -> Endpoint | None:
    """The cacheable operation that a request line names, if it names one."""
    if method != "POST":
        return None
    return ENDPOINTS.get(target.partition(b"?")[0])


def may_look(fields: Fields, wishes: Controls, *, enabled: bool) -> Reason | None:
    """Whether a request with this head, to a cacheable path, may be looked up at all."""
    if not enabled:
        return Reason.CACHE_OFF
    if wishes.no_store:
        return Reason.NO_STORE
    if any(c != b"identity" for c in http_fields.tokens(fields, b"content-encoding")):
        return Reason.ENCODED_REQUEST
    return None


def may_keep_head(ask: Ask, status: int, fields: Fields) -> Reason | None:
    """Whether an answer with this head may be kept once its body has proven complete."""
    if status != 200:
        return Reason.STATUS
    form = form_of(fields)
    if form is None:
        return Reason.CONTENT_TYPE
    if (form is Form.EVENTS) != ask.stream:
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
