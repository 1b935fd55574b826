"""The trail along a prompt: what two prompts share of it is what a backend finds cached; its home is its family."""

import json
import subprocess
import sys
from hashlib import blake2b
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import trail
from cacheproxy.core.affinity import Route
from cacheproxy.core.model import Endpoint
from tests.examples import tries
from tests.rig import ROOT

LONG = "".join(f"Rule {i}: be kind to number {i}. " for i in range(400))
"""Some 12 KB."""


def chat(*turns: str, system: str | None = LONG, **fields: Any) -> Route:
    """The route of a chat: turns of the user and the assistant in turn."""
    messages = [{"role": "system", "content": system}] if system is not None else []
    messages += [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(turns)]
    found = trail.route(Endpoint.CHAT, {"model": "m", "messages": messages, **fields})
    assert found is not None
    return found


def shared(a: Route, b: Route) -> int:
    """How many elements two chains have in common; none behind the first difference."""
    same = [x == y for x, y in zip(a.chain, b.chain, strict=False)]
    count = same.index(False) if False in same else len(same)
    assert not set(a.chain[count:]) & set(b.chain[count:])
    return count


def told(name: str, description: str = "x") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description}}


# --- the chain ---------------------------------------------------------------------------------------------------


def test_the_next_turn_shares_all_of_the_last():
    """Up to the last whole kilobyte of what was said."""
    said = ["word " * 400, "reply " * 400, "again " * 400]
    before, after = chat(*said), chat(*said, "answer " * 400, "and now?")
    assert shared(before, after) == len(before.chain) < len(after.chain)
    assert shared(chat("other " * 400), before) == before.head == after.head


def test_the_next_turn_shares_all_wherever_the_last_one_ended():
    for length in range(900, 2000):
        before, after = chat("x" * length), chat("x" * length, "answer " * 400)
        assert after.chain[: len(before.chain)] == before.chain


def test_what_follows_an_image_is_still_part_of_the_chain():
    """However large it is: it is one thing."""
    image = [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5_000_000}}]

    def asked(*texts: str) -> Route:
        turns = [{"role": "user", "content": content} for content in (image, *texts)]
        return trail.route(Endpoint.CHAT, {"model": "m", "messages": turns})

    alone, one, two = asked(), asked("b " * 2000), asked("c " * 2000)
    assert len(alone.chain) <= 4
    assert shared(one, two) == shared(alone, one) == len(alone.chain) < len(one.chain)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_a_difference_ends_what_is_shared_where_it_stands(share):
    at = int(len(LONG) * share)
    here, there = (chat("hello", system=LONG[:at] + mark + LONG[at:]) for mark in "<>")
    assert shared(here, there) == at // trail.TEXT_BLOCK


def test_the_head_is_what_stands_before_the_conversation():
    assert chat("hello").head == len(LONG) // trail.TEXT_BLOCK + 1 == len(chat("hello").chain)
    assert chat("hello", system=None).head == 0
    assert chat("hello", system="").head == 0
    assert chat(LONG).head == chat("hello").head < len(chat(LONG).chain)


def test_tools_are_read_before_the_system_text():
    tools = [told("alpha"), told("beta")]
    plain, with_tools, others = chat("hi"), chat("hi", tools=tools), chat("hi", tools=[told("alpha"), told("gamma")])
    assert with_tools.head == plain.head + 1
    assert shared(plain, with_tools) == shared(with_tools, others) == 0
    assert shared(with_tools, chat("hi", system="Other.", tools=tools)) == 1


@pytest.mark.parametrize("name", ["model", "cache_salt"])
def test_nothing_is_shared_between_models_nor_between_salts(name):
    here, there = chat("hi", **{name: "a"}), chat("hi", **{name: "b"})
    assert shared(here, there) == 0
    assert here.home != there.home
    assert chat("hi", **{name: "a"}) == here


def test_fields_that_the_prompt_does_not_have_change_nothing():
    assert chat("hi", temperature=1, stream=True, user="u", seed=7) == chat("hi")


def test_a_system_text_in_parts_is_read_as_its_texts():
    parts = [{"type": "text", "text": "First."}, {"type": "text", "text": LONG}]
    here, there = chat("hi", system=parts), chat("ho", system=[*parts[:1], {"type": "text", "text": "Last."}])
    assert shared(here, there) == 1


@pytest.mark.parametrize(
    ("content", "other"),
    [
        ([{"type": "text", "text": "a"}] * 500, [{"type": "text", "text": "b"}] * 500),
        ([{"type": "image_url", "image_url": {"url": "data:;base64," + "A" * 9000 + "B" * 20}}],
         [{"type": "image_url", "image_url": {"url": "data:;base64," + "A" * 9000 + "C" * 20}}]),
        ([{"type": "image_url", "image_url": {"url": "data:;base64," + "A" * 9000}}],
         [{"type": "image_url", "image_url": {"url": "data:;base64," + "A" * 9001}}]),
        ([{"type": "input_audio", "input_audio": {"data": "A" * 2000}}],
         [{"type": "input_audio", "input_audio": {"data": "B" * 2000}}]),
        ("a" * 20_000 + " b", "a" * 20_000 + " c"),
        ([1, 2.5, None, True, ["x"]], [1, 2.5, None, False, ["x"]]),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}),
    ],
)  # fmt: skip
def test_what_is_no_short_text_is_told_apart_too(content, other):
    """B11: images, sounds, long texts, strange contents: by their lengths and by both their ends."""
    one, same, two = (
        trail.route(Endpoint.CHAT, {"model": "m", "messages": [{"role": "user", "content": c}, {"role": "user"}]})
        for c in (content, json.loads(json.dumps(content)), other)
    )
    assert one.chain == same.chain
    assert set(one.chain) - set(two.chain)
    assert one.chain[-1] != two.chain[-1]


def test_messages_with_tool_calls_are_part_of_the_chain():
    def asked(arguments: str) -> Route:
        call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
        messages = [
            {"role": "user", "content": "u" * 2000}, {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "r" * 2000},
        ]  # fmt: skip
        return trail.route(Endpoint.CHAT, {"model": "m", "messages": messages})

    assert shared(asked("{}"), asked("[]")) == 2


def test_the_order_of_names_in_a_message_does_not_matter():
    bodies = [{"role": "user", "content": "x" * 5000}, {"content": "x" * 5000, "role": "user"}]
    one, two = (trail.route(Endpoint.CHAT, {"messages": [body]}) for body in bodies)
    assert one == two
    assert len(one.chain) == 4
    image = [{"type": "image_url", "image_url": {"url": "u"}}]
    bodies = [{"role": "user", "content": image}, {"content": [dict(reversed(image[0].items()))], "role": "user"}]
    one, two = (trail.route(Endpoint.CHAT, {"messages": [body]}) for body in bodies)
    assert one == two
    assert one.chain


# --- other operations --------------------------------------------------------------------------------------------


def test_responses_have_their_instructions_and_their_input():
    def asked(**fields: Any) -> Route:
        return trail.route(Endpoint.RESPONSES, {"model": "m", **fields})

    plain = asked(instructions=LONG, input="hello")
    assert plain.head == len(LONG) // trail.TEXT_BLOCK + 1
    assert len(plain.chain) == plain.head + 1
    assert asked(instructions=LONG, input="hello") == plain
    turns = [{"role": "user", "content": [{"type": "input_text", "text": "u" * 3000}]}]
    output = {"type": "function_call_output", "call_id": "c", "output": "o" * 3000}
    before, after = (asked(instructions=LONG, input=t) for t in (turns, [*turns, output]))
    assert shared(before, after) == len(before.chain) == plain.head + 2
    assert len(after.chain) == plain.head + 5
    developer = [{"role": "developer", "content": LONG}, *turns]
    assert asked(input=developer).head == plain.head


@pytest.mark.parametrize("prompt", [LONG, [LONG, "other"], list(range(5000)), [list(range(5000)), [1]]])
def test_completions_have_their_prompt(prompt):
    """A text, several, token ids, several lists of them: a longer one shares what stands in the shorter."""
    longer = {str: lambda p: p + " more", int: lambda p: [*p, 7]}
    grown = (
        [longer[type(prompt[0][0])](prompt[0]), *prompt[1:]]
        if isinstance(prompt, list) and not isinstance(prompt[0], int)
        else longer[type(prompt[0])](prompt)
    )
    before, after = (trail.route(Endpoint.COMPLETIONS, {"model": "m", "prompt": p}) for p in (prompt, grown))
    assert shared(before, after) == len(before.chain) - 1 >= 5
    assert (before.home, before.head) == (after.home, 0)


@pytest.mark.parametrize(
    ("endpoint", "fields"),
    [
        (Endpoint.EMBEDDINGS, {"model": "m", "input": "x"}), (Endpoint.RERANK, {"query": "x", "documents": ["y"]}),
        (Endpoint.SCORE, {"text_1": "x"}), (Endpoint.MODELS, {}), (Endpoint.CHAT, {"model": "m"}),
        (Endpoint.CHAT, {"messages": []}), (Endpoint.CHAT, {"messages": "x" * 0}), (Endpoint.CHAT, {"messages": 7}),
        (Endpoint.COMPLETIONS, {"prompt": ""}), (Endpoint.COMPLETIONS, {"prompt": []}),
        (Endpoint.COMPLETIONS, {"prompt": [[]]}), (Endpoint.COMPLETIONS, {"prompt": [None]}),
        (Endpoint.RESPONSES, {"input": ""}), (Endpoint.RESPONSES, {"previous_response_id": "r"}),
    ],
)  # fmt: skip
def test_what_has_no_prompt_has_no_route(endpoint, fields):
    assert trail.route(endpoint, fields) is None


# --- the home ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Now: 9:59:59.", "Now: 10:00:00."), ("At 2026-03-01T10:00:01Z.", "At 2027-11-30T23:59:59Z."),
        ("Session 5f3c2a10-9b1e-4c55-8a4e-0123456789ab.", "Session 00000000-aaaa-4bbb-8ccc-ddddeeeeffff."),
        ("Trace DEADBEEF.", "Trace 17."), ("Epoch 1700000000.", "Epoch 1800000001."),
    ],
)  # fmt: skip
def test_times_and_ids_do_not_move_a_family(one, two):
    """B08: be it at the front, where each of them begins a text of its own for the backend."""
    here, there = (chat("hi", system=f"{mark} {LONG}") for mark in (one, two))
    assert here.home == there.home
    assert shared(here, there) == 0


def test_families_differ_in_the_first_kilobyte_in_tools_and_in_nothing_else():
    home = chat("hi").home
    assert len(home) == 16
    assert home == chat("ho", "he").home == chat("hi", system=LONG + "At the end.").home
    assert home != chat("hi", system="Other. " + LONG).home
    assert home == chat("hi", system=LONG[:3000]).home
    assert chat("hi", tools=[told("f")]).home not in (home, chat("hi", tools=[told("g")]).home)
    assert chat("hi", tools=[told("f"), told("g")]).home == chat("hi", tools=[told("g", "y"), told("f", "z")]).home
    assert trail.route(Endpoint.RESPONSES, {"model": "m", "instructions": LONG, "input": "hi"}).home == home


def test_without_a_system_text_the_first_message_is_the_family():
    home = chat("hi 1", system=None).home
    assert home == chat("hi 1", "hello", "more", system=None).home != chat("hi 2", system=None).home
    parts = [{"type": "text", "text": "hi 1"}]
    assert trail.route(Endpoint.CHAT, {"model": "m", "messages": [{"role": "user", "content": parts}]}).home == home


SEEN = """
import json, sys
from cacheproxy.core import trail
from cacheproxy.core.model import Endpoint
route = trail.route(Endpoint.CHAT, json.load(sys.stdin))
print(route.home.hex(), route.head, *route.chain)
"""


def test_a_route_is_the_same_in_every_process():
    body = {
        "model": "m", "tools": [told("f")], "messages": [
            {"role": "system", "content": LONG}, {"role": "user", "content": [{"type": "x", "b": 1.5, "a": None}] * 9},
        ],
    }  # fmt: skip
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SEEN], input=json.dumps(body), env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=True, timeout=60,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1
    assert len(outputs.pop().split()) > 8
    assert chat("hi", system="Be kind.") == Route(
        bytes.fromhex("45d1f823e0ac4defe864389a3c737082"), (17101725377651018507,), 1
    )


# --- bounds ------------------------------------------------------------------------------------------------------


class Counted:
    """A hash that counts what it is fed, and how often."""

    fed = calls = written = 0

    def __init__(self, data: bytes = b"", *, digest_size: int) -> None:
        self._inner = blake2b(data, digest_size=digest_size)

    def update(self, data: bytes) -> None:
        Counted.fed += len(data)
        Counted.calls += 1
        self._inner.update(data)

    def copy(self):
        return self._inner.copy()

    def digest(self) -> bytes:
        return self._inner.digest()


class Writer:
    """What stands for orjson: counts what it writes."""

    OPT_SORT_KEYS, JSONEncodeError = orjson.OPT_SORT_KEYS, orjson.JSONEncodeError

    @staticmethod
    def dumps(value: Any, option: int) -> bytes:
        data = orjson.dumps(value, option=option)
        Counted.written += len(data)
        return data


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "content",
    [
        "x y " * 2_000_000, "漢字 " * 500_000, "A" * 8_000_000, [{}] * 200_000, nested(200), nested(1020),
        [{"type": "image_url", "image_url": {"url": "A" * 8_000_000}}], [{"type": "text", "text": "a b " * 500_000}] * 3,
        {str(i): i for i in range(100_000)}, [{"type": "text", "text": ""}] * 200_000, "a b " * 3000, [{}] * 1000,
    ],
    ids=["text", "wide signs", "data", "empty parts", "deep", "deeper", "image", "long parts", "names", "empty texts", "short texts", "some empty parts"],
)  # fmt: skip
@pytest.mark.parametrize("copies", [1, 2000])
@pytest.mark.parametrize("endpoint", [Endpoint.CHAT, Endpoint.RESPONSES])
def test_work_is_bounded_by_bytes_and_by_hashes(monkeypatch, content, copies, endpoint):
    """Whatever is sent, a trail ends: the beginning of a prompt is what can be found again."""
    monkeypatch.setattr(trail, "blake2b", Counted)
    monkeypatch.setattr(trail, "orjson", Writer)
    Counted.fed = Counted.calls = Counted.written = 0
    if endpoint is Endpoint.CHAT:
        fields: dict[str, Any] = {"messages": [{"role": "user", "content": content}] * copies}
    else:
        fields = {"input": [{"type": "function_call_output", "output": content}] * copies}
    found = trail.route(endpoint, fields)
    assert len(found.chain) <= trail.MOST_HASHES
    assert Counted.fed <= trail.MOST_BYTES + 4096
    assert Counted.calls <= 40_000
    assert Counted.written <= 2 * trail.MOST_BYTES


def test_long_prompts_share_their_beginning():
    one, two = (chat(*["word " * 700] * 300, end) for end in ("a", "b"))
    assert one == two
    assert len(one.chain) == trail.MOST_HASHES


def test_a_system_text_that_fills_it_is_all_head():
    found = chat("hi", system="a b " * 1_000_000)
    assert (found.head, len(found.chain)) == (trail.MOST_HASHES, trail.MOST_HASHES)


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [{"role": 2**70, "content": "x"}]}, {"messages": [{"role": [{}], "content": None}]},
        {"messages": [{"role": "user", "content": "\ud800" * 3000}]}, {"messages": [{"role": "\ud800"}]},
        {"messages": [{"role": "system", "content": "\ud800"}]}, {"model": "\udfff", "messages": ["\ud800"]},
        {"messages": ["x"], "tools": [2**70]}, {"messages": ["x"], "tools": [{"function": {"name": "\ud800"}}]},
        {"messages": [{"role": nested(300), "content": "x"}]}, {"messages": [{"role": nested(1020), "content": [2**70]}]},
        {"messages": [float("nan"), float("inf"), 10**5000, -1, True, None]},
    ],
)  # fmt: skip
def test_what_nothing_can_write_again_has_a_route_too(fields):
    found = trail.route(Endpoint.CHAT, fields)
    assert len(found.home) == 16
    assert found.head <= len(found.chain)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)
MESSAGE = st.fixed_dictionaries({}, optional={"role": st.sampled_from(["system", "user"]) | JSON, "content": JSON})


@given(
    endpoint=st.sampled_from(list(Endpoint)),
    fields=st.fixed_dictionaries({}, optional={
        "model": JSON, "tools": JSON | st.lists(JSON), "messages": JSON | st.lists(MESSAGE), "prompt": JSON, "input": JSON,
        "instructions": JSON, "functions": JSON, "cache_salt": JSON,
    }),
)  # fmt: skip
@tries(300)
def test_every_body_has_a_route_or_none(endpoint, fields):
    """Total over whatever JSON can say, lone surrogates and integers beyond 64 bits included."""
    found = trail.route(endpoint, fields)
    if found is not None:
        assert len(found.home) == 16
        assert 0 <= found.head <= len(found.chain) <= trail.MOST_HASHES
        assert found == trail.route(endpoint, fields)
