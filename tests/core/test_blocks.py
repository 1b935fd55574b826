"""Where the texts stand that a backend reads first; for bodies of any make-up."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.blocks import blocks, head
from cacheproxy.core.model import Endpoint
from tests.core import shapes

SYSTEM = {"role": "system", "content": "a"}
PARTS = {
    "role": "developer",
    "content": [{"type": "text", "text": "b"}, {"type": "image_url"}, {"type": "text", "text": "c"}],
}
USER = {"role": "user", "content": "u"}
LATE = {"role": "system", "content": "d"}


def found(of, endpoint, fields):
    return [(block.pointer, block.text) for block in of(endpoint, fields)]


def test_chat():
    """All system and developer texts; the head has those before any other message, after the tools."""
    body = {"messages": [SYSTEM, PARTS, USER, LATE], "tools": [{"type": "function"}], "functions": []}
    leading = [("/messages/0/content", "a"), ("/messages/1/content/0/text", "b"), ("/messages/1/content/2/text", "c")]
    assert found(blocks, Endpoint.CHAT, body) == [*leading, ("/messages/3/content", "d")]
    assert found(head, Endpoint.CHAT, body) == [("/tools", '[{"type":"function"}]'), *leading]


def test_responses():
    """Instructions first, then leading developer turns of the input."""
    turn = {"role": "developer", "content": [{"type": "input_text", "text": "b"}]}
    body = {"instructions": "a", "input": [turn, USER, LATE]}
    leading = [("/instructions", "a"), ("/input/0/content/0/text", "b")]
    assert found(blocks, Endpoint.RESPONSES, body) == [*leading, ("/input/2/content", "d")]
    assert found(head, Endpoint.RESPONSES, body) == leading
    assert found(head, Endpoint.RESPONSES, {"instructions": "a", "input": "text"}) == leading[:1]


@pytest.mark.parametrize("endpoint", [e for e in Endpoint if e not in (Endpoint.CHAT, Endpoint.RESPONSES)])
def test_other_operations_have_none(endpoint):
    body = {"messages": [SYSTEM], "instructions": "a", "input": [SYSTEM], "tools": [{}]}
    assert blocks(endpoint, body) == head(endpoint, body) == []


@pytest.mark.parametrize(
    "message",
    [{"role": []}, {"role": {}}, {"role": "system", "content": [{"type": {}}, {"type": []}, 1]}, 1, None, [], "x"],
)
def test_odd_messages_have_none(message):
    assert blocks(Endpoint.CHAT, {"messages": [message]}) == []


@given(st.dictionaries(st.sampled_from(["messages", "input", "instructions", "tools", "functions"]), shapes.values))
def test_any_body(body):
    """Total; every text found stands at its place."""
    for endpoint in (Endpoint.CHAT, Endpoint.RESPONSES):
        for block in blocks(endpoint, body):
            value = body
            for part in block.path:
                value = value[part]
            assert json.dumps(value) == json.dumps(block.text)
        head(endpoint, body)
