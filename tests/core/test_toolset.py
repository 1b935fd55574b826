"""One set of tools is one text, in whichever order it came (B09)."""

import copy
import random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import toolset


def tool(name, **parameters):
    return {
        "type": "function",
        "function": {"name": name, "description": f"Does {name}.", "parameters": {"type": "object", **parameters}},
    }


def shuffled(value, rnd):
    """The same objects with their members in another order; lists stay."""
    if isinstance(value, list):
        return [shuffled(v, rnd) for v in value]
    if isinstance(value, dict):
        names = list(value)
        rnd.shuffle(names)
        return {n: shuffled(value[n], rnd) for n in names}
    return value


SCHEMA = {
    "properties": {
        "zone": {"type": "string", "enum": ["utc", "local", "alpha"]},
        "amount": {"type": "number", "default": {"b": 1, "a": [2, 1]}},
        "properties": {"type": "object", "properties": {"type": {"type": "string"}, "enum": {"type": "integer"}}},
    },
    "required": ["zone", "amount"],
    "prefixItems": [{"type": "string"}, {"type": "integer"}],
    "$defs": {"q": {"type": "null"}, "p": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
}


def test_any_order_of_tools_and_members_is_one_text():
    """B09: zeta, alpha, mu in each order, with shuffled schemas."""
    tools = [tool("zeta", **SCHEMA), tool("alpha"), tool("mu", **SCHEMA)]
    rnd = random.Random(9)
    seen = set()
    for _ in range(50):
        other = shuffled(copy.deepcopy(tools), rnd)
        rnd.shuffle(other)
        seen.add(toolset.written(other))
    assert len(seen) == 1
    assert [t["function"]["name"] for t in orjson.loads(seen.pop())] == ["alpha", "mu", "zeta"]


def test_says_the_same_and_arrays_keep_their_order():
    """enum, required, prefixItems, anyOf, defaults; only the tools themselves are sorted."""
    tools = [tool("b", **SCHEMA), tool("a", **SCHEMA)]
    new = orjson.loads(toolset.written(tools))
    assert new == tools[::-1]
    inner = new[0]["function"]["parameters"]
    assert list(inner["properties"]) == ["amount", "properties", "zone"]
    assert inner["properties"]["zone"]["enum"] == ["utc", "local", "alpha"]
    assert list(inner["properties"]["properties"]["properties"]) == ["enum", "type"]
    assert list(new[0]) == ["type", "function"]
    assert list(new[0]["function"]) == ["name", "description", "parameters"]


def test_equal_names_stay_as_they_came():
    """The first and the last of equal names may differ in meaning to a backend."""
    first, second = {**tool("a"), "x": 1}, {**tool("a"), "x": 2}
    for order in ([first, second, tool("0")], [tool("0"), first, second], [first, tool("0"), second]):
        assert [t.get("x") for t in orjson.loads(toolset.written(order))] == [None, 1, 2]
    assert [t.get("x") for t in orjson.loads(toolset.written([second, first]))] == [2, 1]


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        ([{"type": "function", "name": "b"}, {"type": "function", "name": "a"}], ["a", "b"]),
        ([{"type": "web_search"}, {"type": "function", "name": "v"}], ["v", None]),
        ([{"type": "mcp", "server_label": "x"}, {"type": "mcp", "server_label": "a"}], [None, None]),
        ([{"name": "b"}, {"name": "a"}], ["a", "b"]),
    ],
)
def test_forms_of_tools(tools, names):
    """The Responses API's flat functions, built-in tools by their kind, servers by their label, legacy functions."""
    assert [t.get("name") for t in orjson.loads(toolset.written(tools))] == names


def test_what_are_no_tools_is_left_alone():
    assert toolset.written(["a", {}]) is None
    assert toolset.written([[]]) is None
    deep: dict = {}
    for _ in range(2000):
        deep = {"properties": {"a": deep}}
    assert toolset.written([deep]) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["name", "properties", "enum", "type", "x", "default", "function"]), inner),
    max_leaves=12,
)  # fmt: skip


@given(st.lists(st.dictionaries(st.sampled_from(["name", "type", "function", "y"]), json_values), max_size=4))
def test_only_order_changes_and_twice_is_once(tools):
    """For anything: the same members with the same values, and a fixed point."""
    once = toolset.written(tools)
    assert once is not None
    new = orjson.loads(once)
    assert sorted(map(canonical, new)) == sorted(map(canonical, tools))
    assert toolset.written(new) == once


def canonical(value):
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
