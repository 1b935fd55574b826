"""Which requests of real clients are one and the same to the cache, and why others are not."""

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pytest

from cacheproxy.core import canonical, fields, policy
from cacheproxy.core.model import Endpoint
from tests.core.shapes import exact
from tests.rig import ROOT


@dataclass
class Recorded:
    name: str
    client: str
    raw: bytes
    body: dict[str, Any]
    lines: tuple[tuple[bytes, bytes], ...]
    target: bytes

    @property
    def form(self) -> bytes | None:
        body = canonical.read(self.raw)
        assert body is not None
        assert body.trouble is None
        return canonical.form(Endpoint.CHAT, self.raw, body.fields)

    @property
    def key(self) -> bytes:
        return exact(target=self.target, fields=fields.keyed(self.lines), body=self.form)


def load() -> list[Recorded]:
    found = []
    for path in sorted((ROOT / "tests" / "data" / "recorded").glob("*.json")):
        told = json.loads(path.read_text())
        lines = tuple((n.encode(), v.encode()) for n, v in told["headers"])
        raw = told["raw_body"].encode()
        name = path.name.removesuffix(".json")
        found.append(Recorded(name, told["label"], raw, told["json"], lines, told["path"].encode()))
    return found


REQUESTS = load()
BY_NAME = {r.name: r for r in REQUESTS}
PLAIN = {"model": "m", "messages": ["system: Be brief.", "user: Say hi"], "temperature": 0, "limit": 8}


def question(body: dict[str, Any]) -> dict[str, Any]:
    """What a request asks, read by hand: everything but how the answer is to be sent."""
    told = {
        n: v for n, v in body.items() if n not in ("stream", "stream_options", "n", "store", "user") and v is not None
    }
    limits = [told.pop(n) for n in ("max_tokens", "max_completion_tokens") if n in told]
    texts = [m["content"] if isinstance(m["content"], str) else m["content"][0]["text"] for m in told["messages"]]
    told["messages"] = [f"{m['role']}: {text}" for m, text in zip(told["messages"], texts, strict=True)]
    told |= {"temperature": float(told["temperature"])} if "temperature" in told else {}
    return told | ({"limit": limits[0]} if limits else {})


def test_the_recordings_are_all_there():
    assert len(REQUESTS) == 62
    assert all(policy.endpoint_of("POST", r.target) is Endpoint.CHAT for r in REQUESTS)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: r.name)
def test_every_recorded_request_can_be_keyed(request_):
    assert request_.form is not None


def test_one_form_never_stands_for_two_questions():
    """Same form, same question: read from the parsed body, without the code under test."""
    asked = defaultdict(set)
    for each in REQUESTS:
        asked[each.form].add(json.dumps(question(each.body), sort_keys=True))
    assert {len(questions) for questions in asked.values()} == {1}


def test_the_plain_question_has_two_forms():
    """One question as the clients ask it: many writings, and two forms.

    The two differ in the name of the token limit: `max_tokens` counts what is visible, `max_completion_tokens` also
    what is only thought, and some backends know one of the two alone. They are not the same request.
    """
    asked = [r for r in REQUESTS if question(r.body) == PLAIN]
    clients = defaultdict(set)
    for each in asked:
        clients["max_tokens" if "max_tokens" in each.body else "max_completion_tokens"].add(each.client)
    assert clients == {
        "max_tokens": {
            "ai_sdk", "haystack", "litellm", "llamaindex", "openai2_sync", "openai3_sync", "openai_agents",
            "openai_node", "simonw_llm", "simonw_llm036", "smolagents",
        },
        "max_completion_tokens": {"langchain", "langchain17", "pydantic_ai", "pydantic_ai268"},
    }  # fmt: skip
    assert len({r.raw for r in asked}) > 12
    assert len({r.form for r in asked}) == 2


def test_the_plain_question_has_one_key_for_all_clients():
    """Transport fields differ, also `Accept-Language: *`, which names none; the key does not."""
    keys = {each.key for each in REQUESTS if question(each.body) == PLAIN and "max_tokens" in each.body}
    assert len(keys) == 1


@pytest.mark.parametrize("client", sorted({r.client for r in REQUESTS}))
def test_a_client_that_streams_asks_the_same(client):
    """B21, B59: a client's requests with one question have one key, streamed or not."""
    keys = defaultdict(set)
    for each in REQUESTS:
        if each.client == client:
            keys[json.dumps(question(each.body), sort_keys=True)].add(each.key)
    assert {len(found) for found in keys.values()} == {1}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("instructor.01", "instructor117_o3.01"), ("instructor.04", "instructor117_o3.04"),
        ("langchain.03", "langchain17.03"), ("langchain.04", "langchain17.04"), ("openai2_sync.03", "openai3_sync.03"),
        ("openai2_sync.08", "openai3_sync.08"), ("pydantic_ai.03", "pydantic_ai268.03"), ("curl.03", "dspy.01"),
        ("curl.04", "openai3_async.03"),
    ],
)  # fmt: skip
def test_releases_of_a_client_share_their_keys(one, other):
    """`User-Agent`, `X-Stainless-*` and accepted codings differ; the question does not."""
    assert BY_NAME[one].key == BY_NAME[other].key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ai_sdk.01", "ai_sdk.03"), ("instructor.01", "instructor.03"), ("instructor.01", "instructor.02"),
        ("openai3_async.01", "openai3_async.04"), ("dspy.02", "dspy.03"), ("curl.03", "openai3_sync.01"),
        ("guidance.01", "langchain.01"),
    ],
)  # fmt: skip
def test_different_questions_have_different_keys(one, other):
    """B34: tools, formats, temperature and system text tell them apart."""
    assert BY_NAME[one].key != BY_NAME[other].key
