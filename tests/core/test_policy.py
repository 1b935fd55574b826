"""Every rule of what may be looked up and kept, each with its reason."""

import pytest

from cacheproxy.core import policy
from cacheproxy.core.controls import NONE, Controls
from cacheproxy.core.model import Endpoint, Form
from cacheproxy.core.outcome import Reason
from tests.core.shapes import ask

JSON = ("Content-Type", "application/json")
EVENTS = ("Content-Type", "text/event-stream")


def lines(*pairs: tuple[str, str]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.encode(), value.encode()) for name, value in pairs)


@pytest.mark.parametrize(
    ("method", "target", "endpoint"),
    [
        ("POST", "/v1/chat/completions", Endpoint.CHAT), ("POST", "/v1/completions", Endpoint.COMPLETIONS),
        ("POST", "/v1/chat/completions?api-version=1", Endpoint.CHAT), ("POST", "/v1/chat/completions?", Endpoint.CHAT),
        ("GET", "/v1/chat/completions", None), ("post", "/v1/chat/completions", None), ("PUT", "/v1/completions", None),
        ("POST", "/v1/chat/completions/", None), ("POST", "//v1/chat/completions", None),
        ("POST", "/V1/chat/completions", None),
        ("POST", "/v1/chat/completions/chatcmpl-1", None), ("POST", "/v1/embeddings", Endpoint.EMBEDDINGS),
        ("POST", "/v1/responses", Endpoint.RESPONSES), ("GET", "/v1/responses", None),
        ("POST", "/v1/rerank", Endpoint.RERANK), ("POST", "/v1/score", Endpoint.SCORE),
        ("GET", "/v1/models", Endpoint.MODELS), ("HEAD", "/v1/models", None), ("GET", "/v1/models/m", None),
        ("POST", "/x?/v1/completions", None), ("POST", "/v1/chat%2Fcompletions", None), ("POST", "", None),
        ("POST", "*", None),
        ("POST", "/v1/chat/completions#x", None), ("POST", "/v1/chat/completions;x", None),
    ],
)  # fmt: skip
def test_cacheable_operations(method, target, endpoint):
    """Only these, spelled so; another spelling is the backend's to understand."""
    assert policy.endpoint_of(method, target.encode()) is endpoint


@pytest.mark.parametrize(
    ("fields", "wishes", "enabled", "reason"),
    [
        ((), NONE, True, None), ((), NONE, False, Reason.CACHE_OFF),
        ((), Controls(no_store=True), True, Reason.NO_STORE),
        ((), Controls(no_cache=True), True, None),
        (lines(("Content-Encoding", "gzip")), NONE, True, None),
        (lines(("content-encoding", "identity")), NONE, True, None),
        (lines(("Content-Encoding", "")), NONE, True, None),
        (lines(("Content-Encoding", "identity, lz4")), NONE, True, Reason.ENCODED_REQUEST),
        (lines(("Content-Encoding", "identity"), ("Content-Encoding", "x")), NONE, True, Reason.ENCODED_REQUEST),
    ],
)  # fmt: skip
def test_may_look(fields, wishes, enabled, reason):
    """B52: no-store is a bypass, no-cache is not."""
    assert policy.may_look_head(fields, wishes, off=not enabled) is reason


@pytest.mark.parametrize("status", [201, 202, 204, 206, 301, 304, 400, 401, 403, 404, 429, 500, 502, 503])
def test_only_200_is_kept(status):
    """B55."""
    assert policy.may_keep_head(ask(), status, lines(JSON)) is Reason.STATUS


@pytest.mark.parametrize(
    ("media", "form"),
    [
        ("application/json", Form.JSON), ("Application/JSON; charset=utf-8", Form.JSON),
        ("application/json ;x", Form.JSON),
        ("text/event-stream", Form.EVENTS), ("TEXT/EVENT-STREAM;charset=utf-8", Form.EVENTS),
        ("application/vnd.x+json", Form.JSON),
        ("text/html", None), ("text/plain", None), ("", None), ("application/x-ndjson", None),
        ("application/jsonx", None),
        ("text/event-streams", None), ("application/octet-stream", None), ("xapplication/json", None),
    ],
)  # fmt: skip
def test_form_of_an_answer(media, form):
    """B55: an HTML page is no answer, whatever its status."""
    assert policy.form_of(lines(("content-type", media))) is form
    reason = policy.may_keep_head(ask(stream=form is Form.EVENTS), 200, lines(("content-type", media)))
    assert reason is (None if form else Reason.CONTENT_TYPE)


def test_an_answer_without_a_type_is_not_kept():
    assert policy.form_of(()) is None
    assert policy.may_keep_head(ask(), 200, ()) is Reason.CONTENT_TYPE


@pytest.mark.parametrize(("stream", "media"), [(True, JSON), (False, EVENTS)])
def test_the_other_form_is_not_kept(stream, media):
    """B21: a backend that ignores `stream` gives an answer that cannot be judged as asked."""
    assert policy.may_keep_head(ask(stream=stream), 200, lines(media)) is Reason.MODE_MISMATCH


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no-cache", None), ("no-store", Reason.RESPONSE_NO_STORE), ("private, max-age=5", None),
        ("No-Store", Reason.RESPONSE_NO_STORE),
        ("private, NO-STORE ,x", Reason.RESPONSE_NO_STORE), ("max-age=0", None), ("must-revalidate", None),
        ("no-storey", None),
    ],
)  # fmt: skip
def test_the_backends_directives(value, reason):
    """B51: no-store is obeyed, no-cache is not: providers send it on everything."""
    assert policy.may_keep_head(ask(), 200, lines(JSON, ("Cache-Control", value))) is reason
    assert policy.may_keep_head(ask(), 200, lines(JSON, ("cache-control", "x"), ("Cache-Control", value))) is reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("*", Reason.VARY), ("Accept-Encoding", None), ("origin, Accept-Encoding", None), ("Authorization", None),
        ("X-Foo", None), ("X-Foo, *", Reason.VARY), ("User-Agent", Reason.VARY), ("Origin, User-Agent", Reason.VARY),
        ("Cookie", None), ("X-Stainless-Lang", Reason.VARY), ("X-Cache-TTL", Reason.VARY), ("", None),
        ("OpenAI-Organization, OpenAI-Project, Api-Key, X-Api-Key", None),
    ],
)  # fmt: skip
def test_vary(value, reason):
    """B51: what the key or the scope covers may vary; what neither covers may not."""
    assert policy.may_keep_head(ask(), 200, lines(JSON, ("Vary", value))) is reason
    assert policy.may_keep_head(ask(), 200, lines(JSON, ("vary", "Accept"), ("VARY", value))) is reason
