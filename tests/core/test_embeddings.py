"""A batch of embeddings, taken apart and put together: no vector changes, no token is lost, nothing is mixed up."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import embeddings
from cacheproxy.core.outcome import Reason

numbers = st.integers(-9, 9) | st.floats(-1e3, 1e3, allow_nan=False)
names = st.text(max_size=5).filter(lambda name: name not in ("index", "embedding", "data", "usage", "model", "error"))
extras = st.dictionaries(names, st.none() | st.integers() | st.text(max_size=9) | st.lists(st.integers(), max_size=3))
usages = st.dictionaries(
    st.sampled_from(["prompt_tokens", "total_tokens", "cost"]),
    st.integers(0, 10_000) | st.dictionaries(st.text(max_size=3), st.integers(0, 99), max_size=2), max_size=3,
)  # fmt: skip


@st.composite
def batches(draw):
    count, size = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    vectors = [draw(st.lists(numbers, min_size=size, max_size=size)) for _ in range(count)]
    data = [{**draw(extras), "object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]
    order = draw(st.permutations(data))
    document = {"object": "list", "data": order, "model": "e", **draw(extras), "usage": draw(usages)}
    return document, [draw(st.integers(1, 500)) for _ in range(count)]


def in_order(document: dict) -> dict:
    return {**document, "data": sorted(document["data"], key=lambda entry: entry["index"])}


@given(batches(), st.booleans())
def test_what_is_taken_apart_comes_together_as_it_was(batch, spaced):
    """Unknown members too; only the order of the data is that of the question."""
    document, weights = batch
    body = json.dumps(document, indent=1 if spaced else None).encode()
    singles = embeddings.split(body, weights)
    assert not isinstance(singles, Reason)
    assert len(singles) == len(weights)
    assert [embeddings.trouble_of(json.loads(single), 1) for single in singles] == [None] * len(weights)
    whole = embeddings.compose(singles)
    assert whole is not None
    assert json.loads(whole) == in_order(document)


@given(batches(), st.data())
def test_any_selection_is_what_it_was(batch, data):
    """Each vector under the index at which it was asked for, whichever are asked, also twice."""
    document, weights = batch
    singles = embeddings.split(json.dumps(document).encode(), weights)
    chosen = data.draw(st.lists(st.integers(0, len(weights) - 1), min_size=1, max_size=8))
    whole = json.loads(embeddings.compose([singles[i] for i in chosen]))
    ordered = in_order(document)["data"]
    assert [entry["index"] for entry in whole["data"]] == [*range(len(chosen))]
    assert [entry["embedding"] for entry in whole["data"]] == [ordered[i]["embedding"] for i in chosen]


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20), st.integers(0, 100_000))
def test_shares_sum_to_the_whole(weights, tokens):
    """None is without a token if there are enough for all; the heavier has never less."""
    data = [{"index": i, "embedding": [1.0]} for i in range(len(weights))]
    body = json.dumps({"data": data, "model": "e", "usage": {"total_tokens": tokens}}).encode()
    shares = [json.loads(single)["usage"]["total_tokens"] for single in embeddings.split(body, weights)]
    assert sum(shares) == tokens
    assert min(shares) >= (1 if tokens >= len(weights) else 0)
    assert all(
        a <= b + 1 for x, a in zip(weights, shares, strict=True) for y, b in zip(weights, shares, strict=True) if x <= y
    )


def test_numbers_keep_their_text():
    """What was written 1.50 or 1E-07 stays so."""
    body = b'{"data":[{"index":0,"embedding":[1.50,-0.0]},{"index":1,"embedding":[1E-07,2]}],"model":"e","usage":{}}'
    whole = embeddings.compose(embeddings.split(body, [1, 1]))
    assert b"[1.50,-0.0]" in whole
    assert b"[1E-07,2]" in whole


@pytest.mark.parametrize(
    ("given_", "count"),
    [
        ('"a"', 1), ('["a"]', 1), ('["a","b"]', 2), ("[1,2]", 1), ("[[1,2],[3]]", 2), ('["a\\"]","b"]', 2),
        ('[ "a" ,\n"a" ]', 2), ("[]", None), ("{}", None), ("5", None), ('["a",1]', None), ("[[1],[]]", None),
        ("[true]", None), ("null", None), ('[["a"]]', None),
    ],
)  # fmt: skip
def test_the_items_of_a_request(given_, count):
    raw = b'{"model":"e","input":' + given_.encode() + b',"x":1}'
    items = embeddings.items(raw, json.loads(raw))
    assert (None if items is None else len(items)) == count
    for item in items or ():
        assert json.loads(item.raw) == item.value
        assert item.weight >= 1


@given(st.lists(st.text(max_size=8), min_size=1, max_size=6), st.booleans(), st.data())
def test_only_the_wanted_are_asked_and_no_other_byte_differs(texts, plain, data):
    raw = json.dumps({"a": [1], "input": texts, "model": "e"}, ensure_ascii=plain).encode()
    items = embeddings.items(raw, json.loads(raw))
    wanted = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, unique=True))
    asked = json.loads(embeddings.ask_for(raw, items, wanted))
    assert asked == {"a": [1], "input": [texts[i] for i in wanted], "model": "e"}
    assert embeddings.ask_for(raw, items, range(len(texts))) is raw


GOOD = [{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [3.0, 4.0]}]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (GOOD, None), ([], Reason.EMPTY), (GOOD[:1], Reason.UNFINISHED_CHOICE), (None, Reason.MALFORMED),
        ([GOOD[0], GOOD[0]], Reason.MALFORMED), ([GOOD[0], {"index": 1}], Reason.EMPTY),
        ([GOOD[0], {"index": 1, "embedding": []}], Reason.EMPTY),
        ([GOOD[0], {"index": 1, "embedding": [1.0]}], Reason.MALFORMED),
        ([GOOD[0], {"index": 1, "embedding": [None, 1]}], Reason.MALFORMED),
        ([GOOD[0], {"index": 1, "embedding": "AACAPwAAgD8="}], Reason.MALFORMED),
        ([GOOD[0], {"index": 2, "embedding": [1.0, 2.0]}], Reason.MALFORMED), ([*GOOD, GOOD[0]], Reason.MALFORMED),
        ([GOOD[0], {"index": 1, "error": "x"}], Reason.IN_BAND_ERROR),
    ],
)  # fmt: skip
def test_what_is_a_whole_answer(data, reason):
    assert embeddings.trouble_of({"data": data}, 2) is reason


@pytest.mark.parametrize("text", ["AACAPw==", "AACAPwA=", "not base64!", "AACAf", "AADAfw=="])
def test_a_vector_in_base64_is_one(text):
    """Whole numbers of four bytes, not all of them none."""
    trouble = embeddings.trouble_of({"data": [{"index": 0, "embedding": text}]}, 1)
    assert trouble is (None if text == "AACAPw==" else Reason.MALFORMED)


def test_what_does_not_fit_together_is_not_put_together():
    """Other models, other sizes, other encodings."""

    def one(vector, model: str = "e") -> bytes:
        return json.dumps({"data": [{"index": 0, "embedding": vector}], "model": model, "usage": {}}).encode()

    assert embeddings.compose([one([1.0]), one([2.0])]) is not None
    for other in (one([1.0, 2.0]), one("AACAPw=="), one([1.0], "f")):
        assert embeddings.compose([one([1.0]), other]) is None
