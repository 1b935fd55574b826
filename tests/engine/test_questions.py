"""Two requests share a key if and only if the backend would be asked the same thing: any body, any change of it, for
every operation, against an oracle that knows nothing of the code."""

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from cacheproxy.core.model import Endpoint
from cacheproxy.core.outcome import Reason
from cacheproxy.core.policy import ENDPOINTS
from cacheproxy.engine.binder import Binder, Terms
from cacheproxy.engine.bound import Head, Unbound
from tests.core import shapes
from tests.engine import asked
from tests.examples import tries

SECRET = b"s" * 32
TARGETS = {endpoint: path for (path, method), endpoint in ENDPOINTS.items() if method == "POST"}
POSTED = sorted(TARGETS)
KNOWN = sorted(
    asked.BOOKKEEPING | asked.TRANSPORT | asked.NULL_IS_DEFAULT | asked.NULL_IS_DEFAULT_IN_RESPONSES | asked.NUMBERS
)
names = st.sampled_from([*KNOWN, "N", "messages", "input", "model", "encoding_format"]) | shapes.texts
seeds = st.integers(0, 2**32)


def parts(kind: str) -> st.SearchStrategy[Any]:
    one = st.fixed_dictionaries({"type": st.just(kind), "text": shapes.texts}, optional={"x": shapes.leaves})
    return shapes.texts | st.lists(one | shapes.values, max_size=2) | st.none()


def messages(kind: str) -> st.SearchStrategy[Any]:
    roles = st.sampled_from(["user", "system", "developer", "assistant", "tool"])
    return st.lists(
        st.fixed_dictionaries({"role": roles, "content": parts(kind)}, optional={"name": shapes.texts}), max_size=3
    )


tokens = st.lists(st.integers(0, 9), min_size=1, max_size=3)
texts = st.lists(shapes.texts, min_size=1, max_size=4)
SAID: dict[Endpoint, dict[str, st.SearchStrategy[Any]]] = {
    Endpoint.CHAT: {"messages": messages("text")},
    Endpoint.COMPLETIONS: {"prompt": shapes.texts | texts | tokens},
    Endpoint.RESPONSES: {"input": shapes.texts | messages("input_text")},
    Endpoint.EMBEDDINGS: {"input": shapes.texts | texts | tokens | st.lists(tokens, min_size=1, max_size=3)},
    Endpoint.RERANK: {"query": shapes.texts, "documents": texts},
    Endpoint.SCORE: {"text_1": shapes.texts, "text_2": shapes.texts | texts},
}
TYPICAL = {
    "temperature": st.sampled_from([0, 0.0, 1, 0.5, None]), "n": st.sampled_from([1, 2, None]),
    "stream": st.booleans() | st.none(), "stream_options": st.just({"include_usage": True}), "user": shapes.texts,
    "encoding_format": st.sampled_from(["float", "base64", None]), "max_tokens": st.sampled_from([0, 16, None]),
    "tools": st.lists(shapes.objects, max_size=2), "store": st.booleans() | st.none(),
}  # fmt: skip


def bodies(endpoint: Endpoint) -> st.SearchStrategy[dict[str, Any]]:
    typical = st.fixed_dictionaries({"model": st.sampled_from(["m", "M"]), **SAID[endpoint]}, optional=TYPICAL)
    return st.builds(lambda more, usual: {**more, **usual}, st.dictionaries(names, shapes.values, max_size=3), typical)


def keys_of(
    endpoint: Endpoint, raw: bytes, *, target: bytes | None = None, binder: Binder | None = None
) -> list[bytes] | None:
    """The key of each thing that a body asks; None if it is not looked up because it cannot be keyed."""
    bound = (binder or Binder(SECRET, Terms(litellm_body=False))).bind(
        Head("POST", target or TARGETS[endpoint], (), b"c" * 16), endpoint, raw
    )
    if isinstance(bound, Unbound):
        assume(bound.reason is Reason.UNKEYABLE)  # what refers to the backend's memory is not asked for its key
        return None
    if endpoint is not Endpoint.EMBEDDINGS:
        assert bound.items == ()
        return [bound.ask.key]
    assert len(bound.items) > 1 or bound.items[0].key == bound.ask.key
    return [item.key for item in bound.items]


def forms_of(endpoint: Endpoint, raw: bytes) -> list[Any] | None:
    try:
        return asked.body(endpoint, raw)
    except asked.Unkeyable:
        return None


def agree(endpoint: Endpoint, raws: list[bytes]) -> bool:
    """Whether the keys of some bodies are equal exactly where what they ask is. Tells if any two are."""
    forms, keys = [], []
    for raw in raws:
        found, made = forms_of(endpoint, raw), keys_of(endpoint, raw)
        assert (found is None) == (made is None), "keyed if and only if it can be told from all others"
        forms += found or []
        keys += made or []
    assert len(forms) == len(keys)
    first: dict[bytes, Any] = {}
    for form, key in zip(forms, keys, strict=True):
        assert first.setdefault(key, form) == form, "one key, two questions"
    assert len(set(forms)) == len(first), "one question, two keys"
    return len(first) < len(keys)


ABSENT = object()
_ONES = [1, 1.0, True, "1", None, 0, 0.0, False, [1]]
NEAR: dict[str, list[Any]] = {
    **dict.fromkeys(["n", "seed", "temperature", "min_p", "top_k", "x_future"], _ONES),
    "encoding_format": ["float", "base64", None, "int8"], "late_chunking": [True, False, None],
    "stream": [True, False, None], "store": [True, False, None], "user": ["u", "v", None], "metadata": [{"a": 1}, None],
    "stream_options": [{"include_usage": True}, {}, None], "model": ["m", "M", None],
}  # fmt: skip


def contents(kind: str) -> list[Any]:
    """The same text, or nearly, as a text, a part, two parts, a part with more to it, or one of another kind."""
    part = {"type": kind, "text": "x"}
    more = [{**part, "x": None}, {**part, "type": "image"}, {**part, "text": ["x"]}, {"text": "x"}]
    return ["x", [part], [part, part], part, [], None, *([other] for other in more)]


def spoken_in_every_way(body: dict[str, Any], field: str, kind: str) -> list[dict[str, Any]]:
    """A body with one turn, of each of some roles, with each of the contents; and the bare text."""
    turns = [{"role": role, "content": c} for role in ("user", "system", "assistant") for c in contents(kind)]
    turns += [{**turns[0], "name": "n"}, {**turns[1], "type": "message"}]
    return [{**body, field: "x"}, *({**body, field: [turn]} for turn in turns)]


class Change:
    """Changes a value at a random place: its type, a letter, a name, an order, a member more or less."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        changed = copy.deepcopy(body)
        act = self._dice.random()
        lists = [told for name in ("messages", "input") if isinstance(told := changed.get(name), list)]
        turns = [turn for told in lists for turn in told if isinstance(turn, dict)]
        if act < 0.4:
            self._known(changed)
        elif act < 0.6 and turns:
            self._content(self._dice.choice(turns))
        else:
            self._within(self._dice.choice(list(self._holders(changed))))
        return changed

    def _known(self, body: dict[str, Any]) -> None:
        """Another value of a field that has a rule, or of one that has none; or its absence."""
        name = self._dice.choice(sorted(NEAR.keys() & body.keys()) or sorted(NEAR))
        value = self._dice.choice([ABSENT, *NEAR[name]])
        body.pop(name, None)
        if value is not ABSENT:
            body[name] = value

    def _content(self, turn: dict[str, Any]) -> None:
        turn["content"] = self._dice.choice(contents(self._dice.choice(["text", "input_text"])))

    def _holders(self, value: Any):
        if isinstance(value, dict | list):
            yield value
            for inner in value.values() if isinstance(value, dict) else value:
                yield from self._holders(inner)

    def _within(self, holder: Any) -> None:
        act = self._dice.randrange(6)
        places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if act == 0 or not places:
            self._add(holder)
            return
        place = self._dice.choice(places)
        if act == 1:
            del holder[place]
        elif act == 2 and isinstance(holder, dict):
            holder[self._dice.choice([f"{place}x", place.upper(), *KNOWN])] = holder.pop(place)
        elif act == 2:
            other = self._dice.choice(places)
            holder[place], holder[other] = holder[other], holder[place]
        else:
            holder[place] = self._other(holder[place])

    def _add(self, holder: Any) -> None:
        value = self._dice.choice([None, 0, 1, 1.0, "", "1", True, [], {}])
        if isinstance(holder, dict):
            holder.setdefault(self._dice.choice([*KNOWN, "x_future", ""]), value)
        else:
            holder.insert(self._dice.randint(0, len(holder)), value)

    def _other(self, value: Any) -> Any:
        if isinstance(value, str):
            at = self._dice.randint(0, len(value))
            return self._dice.choice([
                value[:at] + self._dice.choice("a \né\u0301") + value[at:], value[1:], value.upper(), [value],
                [{"type": "text", "text": value}], [{"type": "input_text", "text": value}],
                [{"role": "user", "content": value}], None,
            ])  # fmt: skip
        if isinstance(value, bool | int | float):
            near = [value + 1, -value, float(value), str(value), bool(value), [value], None]
            return self._dice.choice([n for n in near if not isinstance(n, int) or -(2**63) <= n < 2**64])
        return self._dice.choice([None, {}, [], 0, False, "", [value]])


@pytest.mark.parametrize("endpoint", POSTED)
@tries(50)
@given(st.data(), seeds)
def test_bodies_share_a_key_exactly_if_they_ask_the_same(endpoint, data, seed):
    """B01, B02, B03, B04, B06: a body and what it becomes by change after change, each written in a way of its own."""
    dice = random.Random(seed)
    change = Change(dice)
    body = data.draw(bodies(endpoint))
    versions = [{**body, **{name: dice.choice(NEAR[name]) for name in dice.sample(sorted(NEAR), 3)}}]
    for _ in range(12):
        versions.append(change(dice.choice(versions)))
    if endpoint in (Endpoint.CHAT, Endpoint.RESPONSES) and dice.random() < 0.5:
        said = ("messages", "text") if endpoint is Endpoint.CHAT else ("input", "input_text")
        versions += spoken_in_every_way(dice.choice(versions), *said)
    event(f"shares a key: {agree(endpoint, [shapes.write(v, dice, shuffle=True) for v in versions])}")


@pytest.mark.parametrize("endpoint", POSTED)
@tries(30)
@given(st.data(), seeds)
def test_what_only_looks_different_shares_the_key(endpoint, data, seed):
    """The other half without the oracle: bookkeeping, transport, null for absent, a whole number, one text part."""
    dice = random.Random(seed)
    body = data.draw(bodies(endpoint)) | {name: dice.choice([0, 1, 0.5]) for name in asked.NUMBERS}
    responses = endpoint is Endpoint.RESPONSES
    raw = shapes.write(body, dice)
    assume((keys := keys_of(endpoint, raw)) is not None)
    other = dict(body)
    for name in asked.TRANSPORT if endpoint in asked.STREAMED else ():
        other[name] = dice.choice([True, False, None]) if name == "stream" else {"include_usage": True}
    for name in () if responses else asked.BOOKKEEPING:
        other[name] = dice.choice([None, "x", [1]])
    for name in asked.NULL_IS_DEFAULT_IN_RESPONSES if responses else asked.NULL_IS_DEFAULT:
        if name not in other:
            other[name] = None
        elif other[name] is None:
            del other[name]
    for name in asked.NUMBERS & other.keys():
        if type(other[name]) is int:
            other[name] = float(other[name])
    assert keys_of(endpoint, shapes.write(other, dice, shuffle=True)) == keys


@pytest.mark.parametrize("endpoint", POSTED)
@tries(40)
@given(st.data(), seeds)
def test_damage_to_the_bytes_is_seen_or_changes_nothing(endpoint, data, seed):
    """Some bytes of a body are lost, doubled, swapped or others: as long as it is JSON, the law holds."""
    dice = random.Random(seed)
    fields = data.draw(bodies(endpoint))
    raw = shapes.write(fields, dice)
    legal = 0
    again = dice.choice(list(fields))
    twice = b"{%b:%b," % (shapes.write(again, dice), shapes.write(dice.choice([fields[again], 1]), dice))
    assert keys_of(endpoint, twice + raw.lstrip()[1:]) is None
    for _ in range(12):
        at, end = sorted(dice.choices(range(len(raw) + 1), k=2))
        end = min(end, at + dice.choice([0, 1, 2, 30]))
        junk = dice.choice([b"", raw[at:end] * 2, b" ", b"0", b"-", b"1e5", b'"', b",", b"\\u0041", b"null", b'"":0,'])
        other = raw[:at] + junk + raw[end:]
        try:
            json.loads(other.decode())
        except ValueError:
            continue
        legal += 1
        agree(endpoint, [raw, other])
    event(f"legal JSON: {min(legal, 3)}")


@tries(40)
@given(st.data(), seeds)
def test_one_body_at_two_operations_is_two_questions(data, seed):
    """B06: path and query, as they were written, count in every spelling."""
    body = {**data.draw(bodies(Endpoint.CHAT)), "prompt": None, "input": "x", "query": "x", "documents": ["x"]}
    raw = shapes.write(body, random.Random(seed))
    targets = [
        target + query for target in TARGETS.values() for query in (b"", b"?", b"?a=1", b"?a=2", b"?a=1&", b"?A=1")
    ]
    found = [
        key for target in targets
        for key in keys_of(next(e for e in POSTED if TARGETS[e] == target.partition(b"?")[0]), raw, target=target) or ()
    ]  # fmt: skip
    assert len(set(found)) == len(found)
    assert keys_of(Endpoint.CHAT, raw) is None or len(found) > 6
