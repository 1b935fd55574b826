"""Two bodies have one canonical form if and only if the backend is asked the same."""

import copy
import itertools
import json
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cacheproxy.core import canonical
from cacheproxy.core.model import Endpoint
from cacheproxy.core.outcome import Reason
from tests.core import shapes
from tests.core.shapes import BODY, form, plain

SPECIAL = canonical.IGNORED | canonical.NULL_IS_ABSENT | canonical.NUMBERS | {"messages", "n", "model", "prompt"}
unknown_names = shapes.texts.filter(lambda name: name not in SPECIAL)
bodies = st.dictionaries(unknown_names, shapes.values, min_size=1, max_size=5).map(lambda more: {**BODY, **more})


def user(content: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": content}]}


@given(bodies, shapes.randoms)
def test_every_way_of_writing_a_body_has_one_form(body, rnd):
    """Key order at every depth, white space and escapes change nothing, and no such body is refused."""
    assert form(shapes.write(body, rnd, shuffle=True)) == form(body) is not None


@pytest.mark.parametrize(
    "extra",
    [
        {"stream": False}, {"stream": True}, {"stream": None}, {"stream_options": {"include_usage": True}},
        {"user": "u1"}, {"metadata": {"a": "b"}}, {"store": True}, {"safety_identifier": "s"},
        {"prompt_cache_key": "k"}, {"n": 1}, *({name: None} for name in sorted(canonical.NULL_IS_ABSENT)),
    ],
    ids=json.dumps,
)  # fmt: skip
def test_transport_and_bookkeeping_do_not_count(extra):
    assert form({**BODY, **extra}) == form(BODY) is not None


@pytest.mark.parametrize("name", sorted(canonical.NUMBERS))
def test_a_number_field_has_one_form_for_whole_numbers(name):
    assert form({**BODY, name: 0}) == form({**BODY, name: 0.0}) != form({**BODY, name: 1})


def test_absent_temperature_is_not_zero():
    """B02: absent and null are the backend's default; 0 is 0."""
    absent, null = form(BODY), form({**BODY, "temperature": None})
    assert absent == null != form({**BODY, "temperature": 0})


def test_content_of_one_text_part_is_the_text():
    assert form(user([{"type": "text", "text": "hi"}])) == form(user("hi")) is not None


@pytest.mark.parametrize(
    "content",
    [
        [], None, "", [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}], ["hi"],
        [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
        [{"type": "input_text", "text": "hi"}],
        [{"type": "text", "text": ["hi"]}], {"type": "text", "text": "hi"}, [[{"type": "text", "text": "hi"}]],
    ],
    ids=json.dumps,
)  # fmt: skip
def test_other_content_is_not_that_text(content):
    assert form(user(content)) not in (None, form(user("hi")))


def test_content_of_completions_is_not_touched():
    parts = user([{"type": "text", "text": "hi"}])
    assert form(parts, Endpoint.COMPLETIONS) != form(user("hi"), Endpoint.COMPLETIONS)


SAMPLING = [
    ("max_tokens", 16, 4000), ("max_completion_tokens", 16, 17), ("seed", 1, 2), ("stop", "a", ["a"]), ("n", 2, 3),
    ("top_p", 0.1, 0.2), ("logit_bias", {"1": 1}, {"1": 2}), ("presence_penalty", 0, 1), ("logprobs", True, False),
    ("response_format", {"type": "text"}, {"type": "json_object"}), ("reasoning_effort", "low", "high"),
    ("tool_choice", "none", "required"), ("x_future", 1, 2), ("model", "m1", "m2"), ("temperature", 0, 2),
    ("chat_template_kwargs", {"enable_thinking": False}, {"enable_thinking": True}),
    ("tools", [{"type": "function", "function": {"name": "f"}}], [{"type": "function", "function": {"name": "g"}}]),
]  # fmt: skip


def test_every_sampling_field_tells_requests_apart():
    """B01, B03: known and unknown fields alike; every one of these bodies has a form of its own."""
    forms = [form({**BODY, name: value}) for name, *pair in SAMPLING for value in pair]
    forms.append(form(BODY))
    assert None not in forms
    assert len(set(forms)) == len(forms) == 2 * len(SAMPLING) + 1


@pytest.mark.parametrize("name", ["seed", "max_tokens", "n", "x_future", "logit_bias"])
def test_types_are_told_apart(name):
    """1, 1.0, "1" and true are one value only where the API says ``number``."""
    forms = {form({**BODY, name: value}) for value in (2, 2.0, "2", True, 1.0, "1")}
    assert None not in forms
    assert len(forms) == 6


def test_null_of_an_unknown_field_is_not_its_absence():
    assert form({**BODY, "x_future": None}) != form(BODY)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("what does print(A) do", "what does print(a) do"), ("def f():\n  x", "def f():\n    x"), ("x=1\n\n", "x=1"),
        ("a b", "a  b"), ("a", " a"), ("é", "e\u0301"), ("a\r\nb", "a\nb"), ("ﬁ", "fi"),
    ],
)  # fmt: skip
def test_text_is_not_normalised(one, other):
    """B06: letter case, white space and Unicode form are part of the question."""
    assert form(user(one)) != form(user(other))


@pytest.mark.parametrize("kind", ["image_url", "input_audio", "file"])
def test_media_counts_to_its_last_byte(kind):
    """B11: equal in the first 70,000 characters, different in the last 20."""

    def ask(tail: str) -> bytes | None:
        return form(
            user([{"type": "text", "text": "what is it?"}, {"type": kind, kind: {"data": "A" * 70_000 + tail}}])
        )

    assert ask("A" * 20) != ask("A" * 19 + "B")


def test_media_parts_keep_type_and_order():
    """B11: which part comes first, and what kind it is, is part of the question."""
    parts = [{"type": "image_url", "x": "A"}, {"type": "image_url", "x": "B"}, {"type": "file", "x": "A"}]
    forms = {form(user(list(order))) for order in itertools.permutations(parts, 2)}
    assert len(forms) == 6


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """The paths of all scalars and empty containers."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [place for name, item in inner for place in places(item, (*path, name))]
    return found or [path]


def changed(value: Any, path: tuple, leaf: Any) -> Any:
    if not path:
        return leaf
    copied = copy.copy(value)
    copied[path[0]] = changed(value[path[0]], path[1:], leaf)
    return copied


@given(bodies, shapes.leaves, st.data())
def test_another_leaf_is_another_form(body, leaf, data):
    path = data.draw(st.sampled_from([p for p in places(body) if p[0] != "messages"]))
    other = changed(body, path, leaf)
    assume(plain(other) != plain(body))
    assert form(other) != form(body)


@given(bodies, unknown_names, shapes.values)
@example(BODY, "x_future", None)
def test_one_more_unknown_field_is_another_form(body, name, value):
    """B03: also when its value is null, false or empty."""
    assume(name not in body)
    assert form({**body, name: value}) != form(body)


@given(st.lists(shapes.values, min_size=2, max_size=5), st.data())
def test_order_of_an_array_counts(items, data):
    i, j = data.draw(st.tuples(*[st.integers(0, len(items) - 1)] * 2))
    assume(plain(items[i]) != plain(items[j]))
    swapped = list(items)
    swapped[i], swapped[j] = items[j], items[i]
    for name in ("messages", "tools", "stop", "x_future"):
        assert form({**BODY, name: items}) != form({**BODY, name: swapped})


@pytest.mark.parametrize(
    ("fields", "endpoint", "choices"),
    [
        ({}, "chat", 1), ({"n": 3}, "chat", 3), ({"n": None}, "chat", 1), ({"n": 0}, "chat", 1), ({"n": -2}, "chat", 1),
        ({"n": True}, "chat", 1), ({"n": "3"}, "chat", 1), ({"n": 2.0}, "chat", 1), ({"prompt": ["a", "b"]}, "chat", 1),
        ({"prompt": "ab"}, "text", 1), ({"prompt": ["a", "b"]}, "text", 2), ({"prompt": [1, 2, 3]}, "text", 1),
        ({"prompt": [[1], [2], [3]], "n": 2}, "text", 6), ({"prompt": []}, "text", 1),
    ],
)  # fmt: skip
def test_number_of_choices(fields, endpoint, choices):
    kind = Endpoint.CHAT if endpoint == "chat" else Endpoint.COMPLETIONS
    assert canonical.choices_of(fields, kind) == choices


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (None, False), ({}, False), ({"include_usage": False}, False), ({"include_usage": True}, True),
        ({"include_usage": None}, False), ({"include_usage": 1}, False), ([], False), ("include_usage", False),
    ],
)  # fmt: skip
def test_usage_is_wanted_only_if_asked(options, wanted):
    assert canonical.wants_usage({"stream_options": options}) is wanted


@pytest.mark.parametrize(("model", "name"), [("m", "m"), (None, ""), (5, ""), (["m"], "")])
def test_model(model, name):
    assert canonical.model_of({"model": model}) == name


@pytest.mark.parametrize("stream", [1, 0, "true", [], {}, 0.0])
def test_stream_must_be_a_boolean(stream):
    """Whether a backend would stream for it cannot be known."""
    assert canonical.read(plain({**BODY, "stream": stream})).trouble is Reason.UNKEYABLE


@pytest.mark.parametrize(
    ("asked", "trouble"), [(True, Reason.STREAM_OPTIONS), (1, Reason.STREAM_OPTIONS), (False, None), (None, None)]
)
def test_continuous_usage_is_not_looked_up(asked, trouble):
    body = {**BODY, "stream": True, "stream_options": {"continuous_usage_stats": asked}}
    assert canonical.read(plain(body)).trouble is trouble
