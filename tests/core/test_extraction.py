"""What a body names of what its answer rests on: all of it, or it is said that it is not all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import extraction
from cacheproxy.core.controls import MAX_LIST_BYTES, MAX_NAME_BYTES, MOST_LABELS
from cacheproxy.core.expressions import compiled
from cacheproxy.core.extraction import MOST_SIGHTINGS, NOTHING, Extracted, Into, Place, extract
from tests.examples import tries

MOST = 2**20
DOC = compiled('<doc id="([^"]*)"')
PROMPT = {"messages": [{"role": "user", "content": 'Q? <doc id="faq-7">x</doc> <doc id="b, c">y</doc>'}]}


def found(places, body, most: int = MOST) -> Extracted:
    return extract(places if isinstance(places, list) else [places], body, most)


def at(*path: str, into=Into.DOCUMENTS, pattern: str | None = None) -> Place:
    return Place(into, path, None if pattern is None else compiled(pattern))


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("faq-7", ["faq-7"]), (["a", "b"], ["a", "b"]), ([7, "b", 7], ["7", "b"]), (7, ["7"]), (None, []), ([], []),
        ("", []), (["", None, " "], []), ("é %41@\0", ["é %41@\0"]), ([" a "], [" a "]),
        ("a, b", ["a, b", "a", "b"]), (["a,"], ["a,", "a"]), ("x" * (MAX_NAME_BYTES - 4), ["x" * (MAX_NAME_BYTES - 4)]),
    ],
)  # fmt: skip
def test_a_value_is_the_name(value, names):
    """Literally: who says which document changed says it in the same letters. What commas part counts as both."""
    told = found(at("metadata", "documents"), {"metadata": {"documents": value}})
    assert told == Extracted(documents=tuple(f"doc:{name}" for name in names))


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (("docs", "*", "id"), ["a", "b"]), (("docs", "1", "id"), ["b"]), (("docs", "9", "id"), []),
        (("docs", "-", "id"), []), (("docs", "id"), []), (("a/b", "~"), ["c"]), (("*",), []), (("docs", "*", "x"), []),
        (("docs", "x" * 20), []), (("docs", "²"), []),
    ],
)  # fmt: skip
def test_a_pointer_leads_there(path, names):
    body = {"docs": [{"id": "a"}, {"id": "b"}, {}, 5], "a/b": {"~": "c"}}
    assert found(at(*path), body).documents == tuple(f"doc:{name}" for name in names)


def test_a_pattern_is_looked_for_in_every_text_below():
    body = {
        **PROMPT, "model": '<doc id="m"', "tools": [{"x": ['<doc id="t"']}], '<doc id="name"': 5, "n": None,
    }  # fmt: skip
    assert set(found(Place(Into.DOCUMENTS, (), DOC), body).documents) == {"doc:faq-7", "doc:b, c", "doc:m", "doc:t"}
    assert found(at("messages", "*", "content", pattern='id="([^"]+)'), body).documents == ("doc:faq-7", "doc:b, c")


@pytest.mark.parametrize(
    ("pattern", "text", "names"),
    [
        ("[a-z]+-[0-9]+", "see faq-7, faq-8", ["faq-7", "faq-8"]), ("<a=(x)|<b=(y)", "<b=y <a=x", ["y", "x"]),
        ("(é.)", "éa", ["éa"]), (r"(?m)^Source: (.+)$", "Source: a\nSource: b", ["a", "b"]), ("(x)", "", []),
    ],
)  # fmt: skip
def test_of_a_match_the_group_is_the_name(pattern, text, names):
    assert found(at("prompt", into=Into.TAGS, pattern=pattern), {"prompt": text}) == Extracted(tags=tuple(names))


def test_each_kind_goes_its_own_way():
    places = [at("d"), at("t", into=Into.TAGS), at("k", into=Into.KB)]
    told = found(places, {"d": "a", "t": "b", "k": ["handbook@v1", "faq"]})
    assert told == Extracted(("doc:a",), ("b",), ("handbook@v1", "faq"))
    assert told.labels == ("doc:a", "b")


@pytest.mark.parametrize("value", [True, 1.5, {}, [["a"]], ["a", {"id": "b"}], ["a", False]])
def test_what_is_no_name_is_said(value):
    """An answer that rests on it cannot be named by whoever says what changed."""
    assert not found(at("d"), {"d": value}).whole


@pytest.mark.parametrize("text", ['<doc id="">', '<doc id="a"><doc id="">'])
def test_a_document_without_a_name_is_said(text):
    assert not found(Place(Into.DOCUMENTS, (), DOC), {"prompt": text}).whole
    assert not found(at("prompt", pattern='<doc(?: id="([^"]+)")?'), {"prompt": "<doc>"}).whole
    assert not found(at("prompt", pattern=r"(\C)"), {"prompt": "é"}).whole


@pytest.mark.parametrize(("name", "whole"), [("a@1", True), ("a@", True), ("a@b@c", False), ("@v1", False)])
def test_where_a_version_begins_must_be_certain(name, whole):
    assert found(at("k", into=Into.KB), {"k": name}).whole is whole


@pytest.mark.parametrize(
    ("names", "whole"),
    [
        ([f"n{number}" for number in range(MOST_LABELS)], True),
        ([f"n{number}" for number in range(MOST_LABELS + 1)], False),
        (["x" * (MAX_NAME_BYTES - 4)], True), (["x" * (MAX_NAME_BYTES - 3)], False), (["é" * MAX_NAME_BYTES], False),
        ([f"{number}{'x' * 1024}" for number in range(MAX_LIST_BYTES // 1024)], False),
        (["x"] * MOST_SIGHTINGS, True), (["x"] * (MOST_SIGHTINGS + 1), False),
    ],
)  # fmt: skip
def test_beyond_the_bounds_it_is_said(names, whole):
    assert found(at("d"), {"d": names}).whole is whole


def test_no_more_text_is_searched_than_wanted():
    place = Place(Into.DOCUMENTS, (), DOC)
    assert found([place], {"prompt": "é" * 10}, 20) == NOTHING
    assert not found([place], {"prompt": "é" * 10}, 19).whole
    assert not found([place, place], {"prompt": "é" * 10}, 39).whole
    assert found([at("d")], {"prompt": "é" * 10, "d": "a"}, 0).documents == ("doc:a",)


def test_documents_belong_to_a_key_and_labels_do_not():
    keyed = [
        Extracted().keyed("kb"), Extracted(documents=("doc:a",)).keyed("kb"), Extracted(documents=("doc:b",)).keyed("kb"),
        Extracted(documents=("doc:a", "doc:b")).keyed("kb"), Extracted(documents=("doc:a,doc:b",)).keyed("kb"),
        Extracted(documents=("doc:a",)).keyed(""),
    ]  # fmt: skip
    assert len(set(keyed)) == len(keyed)
    assert keyed[0] == "kb" == Extracted(tags=("t",), kb=("k",)).keyed("kb")
    assert Extracted(documents=("doc:b", "doc:a")).keyed("") == Extracted(documents=("doc:a", "doc:b")).keyed("")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), lambda inner: st.lists(inner) |
    st.dictionaries(st.sampled_from(["a", "b", "*", "0"]), inner), max_leaves=20,
)  # fmt: skip
PATH = st.lists(st.sampled_from(["a", "b", "*", "0", "1"]), max_size=4).map(tuple)
PLACES = st.lists(
    st.builds(Place, st.sampled_from(list(Into)), PATH, st.sampled_from([None, compiled("(a+)|b"), DOC])), max_size=3
)


@tries(200)
@given(PLACES, st.dictionaries(st.sampled_from(["a", "b", "*"]), JSON))
def test_any_body_is_read_and_none_changed(places, body):
    copy = repr(body)
    told = extract(places, body, MOST)
    assert repr(body) == copy
    assert all(label.startswith("doc:") for label in told.documents)
    assert extract(places, body, MOST) == told


def test_what_is_found_is_found_in_the_words_of_the_caller():
    """Nothing is lowered, stripped or brought into another form: é and é are two names."""
    names = ["É", "e\u0301", "\u00e9", " A", "A "]
    assert found(at("d"), {"d": names}).documents == tuple(f"doc:{name}" for name in names)
    assert extraction.EVERY == "*"
