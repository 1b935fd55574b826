"""``cacheproxy explain``: what it says of a request is what happens to it."""

import json

import pytest

from cacheproxy.explain import explain
from cacheproxy.settings import resolve
from tests import rig

BODY = {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}], "user": "u"}


def settings(**values):
    named = {name.replace("__", "."): value for name, value in values.items()}
    return resolve({"upstreams": ["http://backend"], "store.data_dir": "none", **named}, None, {}).settings


def told(body=BODY, path=rig.CHAT, lines=(), **values):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return explain(settings(**values), "POST", path, lines, raw)


def test_what_normalisation_changes():
    changes = {c["pointer"]: (c["before"], c["after"]) for c in told()["changes"]}
    assert changes == {"/user": ('"u"', None), "/messages/0/content": ('[{"type":"text","text":"hi"}]', '"hi"')}


@pytest.mark.parametrize(
    ("body", "path", "lines", "values", "reason"),
    [
        (BODY, "/v1/other", (), {}, "uncacheable_path"), (BODY, rig.CHAT, (), {"exact__mode": "off"}, "cache_off"),
        (BODY, rig.CHAT, ("Cache-Control: no-store",), {}, "no_store"),
        (BODY, rig.CHAT, ("Cache-Control: no-cache",), {}, "no_cache"),
        (BODY, rig.CHAT, (), {"exact__mode": "write-only"}, "write_only"),
        (b'{"model":"m","model":"n"}', rig.CHAT, (), {}, "unkeyable"),
        (BODY, rig.CHAT, (), {"rules": [{"match": {"model": "m"}, "set": {"exact": "off"}}]}, "cache_off"),
    ],
)  # fmt: skip
def test_why_not(body, path, lines, values, reason):
    exact = told(body, path, lines, **values)["exact"]
    assert (exact["serves"], exact["reason"]) == (False, reason)
    assert exact["why"]


def test_what_the_backend_gets_otherwise():
    """LiteLLM's field goes, the usage of a stream is asked for; nothing else."""
    body = {**BODY, "stream": True, "cache": {"ttl": 5}}
    forwarded = told(body, lines=("X-Cache-TTL: 9", "X-A: 1"))["forwarded"]
    assert forwarded["headers_removed"] == ["X-Cache-TTL"]
    assert forwarded["body"]["removed"] == ['"cache": {"ttl": 5}']
    assert forwarded["body"]["added"] == ['"stream_options":{"include_usage":true}']


async def test_the_id_and_the_state_are_those_of_the_running_proxy(start, session, backend, tmp_path):
    """The same data directory: the same id as in the answer's header, found in the file."""
    proxy = await start(store__data_dir=str(tmp_path / "data"))
    answer = await rig.Client(proxy.base, session).send(BODY)
    await rig.until(lambda: proxy.house.store._back.census().entries == 1)
    found = explain(proxy.house.settings, "POST", rig.CHAT, ["Authorization: Bearer A"], json.dumps(BODY).encode())
    assert (found["entry_id"], found["entry_id_lasts"]) == (answer.get("x-cache-entry-id"), True)
    assert found["stored"][0]["state"] == "fresh"


def test_what_layer_one_changes_and_leaves():
    """Span by span what the rules change, and what is left that will differ next time; also where nothing is looked
    up."""
    text = "Now 2026-03-01 10:00:01.\r\nBe kind."
    body = {"model": "m", "messages": [{"role": "system", "content": text}, {"role": "user", "content": "u"}]}
    for lines in ((), ("Cache-Control: no-store",)):
        said = told(body, lines=lines)
        assert said["prefix"]["changes"] == [
            {"rule": "newlines", "pointer": "/messages/0/content", "before": "\r\n", "after": "\n", "count": 1}
        ]
        assert [(v["kind"], v["rule"], v["text"], v["column"]) for v in said["prefix"]["volatile"]] == [
            ("clock", "clock", "2026-03-01 10:00:01", 5)
        ]
        assert said["forwarded"]["body"]["identical"] is False
    moved = told(body, prefix__rules__clock="move")["prefix"]
    assert moved["volatile"] == []
    assert {c["rule"] for c in moved["changes"]} == {"newlines", "clock"}


def test_hints_are_shown_where_they_are_sent():
    added = told(prefix__hints__cache_salt=True)["forwarded"]["body"]["added"]
    assert [line.partition(":")[0] for line in added] == ['"cache_salt"']


@pytest.mark.parametrize(
    ("flags", "headers", "wanted"),
    [
        ({}, [], {"serves": True}),
        ({"semantic.mode": "off"}, [], {"serves": False}),
        ({"semantic.mode": "on"}, [], {"serves": True, "question": "Hello?", "threshold": 0.92}),
        ({"semantic.mode": "shadow"}, [], {"serves": False, "question": "Hello?"}),
        ({"semantic.mode": "on"}, ["X-Cache-Semantic: 0.95"], {"serves": True, "threshold": 0.95}),
        ({"semantic.mode": "on"}, ["X-Cache-Semantic: off"], {"serves": False}),
        ({"rules": [{"set": {"semantic": True, "threshold": 0.97}}]}, [], {"serves": True, "threshold": 0.97}),
    ],
)
def test_whether_a_like_question_may_answer(flags, headers, wanted):
    settings = resolve({"upstreams": ["http://b"], "store.data_dir": "none", **flags}, None, {}).settings
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}
    told = explain(settings, "POST", "/v1/chat/completions", headers, json.dumps(body).encode())["semantic"]
    assert {name: told[name] for name in wanted} == wanted


def test_why_a_request_has_no_question():
    settings = resolve({"upstreams": ["http://b"], "semantic.mode": "on", "store.data_dir": "none"}, None, {}).settings
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello?"}], "tools": [{"type": "function"}]}
    told = explain(settings, "POST", "/v1/chat/completions", [], json.dumps(body).encode())["semantic"]
    assert told["reason"] == "not_a_question"


def test_what_is_found_in_the_body_is_shown():
    places = [{"into": "documents", "pattern": 'id="([^"]+)"'}, {"into": "kb", "pointer": "/metadata/kb"}]
    rule = {"set": {"extract": [{"into": "tags", "pointer": "/metadata/team"}], "tags": "ruled"}}
    body = {
        "model": "m", "messages": [{"role": "user", "content": '<doc id="faq-7">'}],
        "metadata": {"kb": "handbook@v1", "team": "red"},
    }  # fmt: skip
    said = told(body, kb__extract=places, rules=[rule])
    assert said["extracted"] == {"documents": ["doc:faq-7"], "tags": ["red"], "kb": ["handbook@v1"]}
    assert said["keep"]["tags"] == ["doc:faq-7", "red", "ruled"]
    assert said["knowledge"] == ["handbook@v1"]
    plain = told(body)
    assert plain["extracted"] == {"documents": [], "tags": [], "kb": []}
    assert plain["entry_id"] != said["entry_id"]


def test_why_a_body_that_names_what_cannot_be_named_is_not_looked_up():
    places = [{"into": "documents", "pointer": "/metadata/documents"}]
    said = told({**BODY, "metadata": {"documents": {"a": 1}}}, kb__extract=places)
    assert said["exact"]["reason"] == "unnamed_dependency"
