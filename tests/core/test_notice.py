"""A removal as a line in the log: what is read is what was written, and what cannot be read whole is not read at all."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import notice
from cacheproxy.core.notice import Notice
from cacheproxy.core.removal import Selector
from tests.examples import tries

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
NAMES = st.frozensets(TEXT, max_size=4)
NUMBER = st.floats(0, 1e12) | st.integers(0, 2**40)
SELECTOR = st.builds(
    Selector, tags=NAMES, kb=NAMES, model=st.none() | TEXT, namespace=st.none() | TEXT, entry_ids=NAMES,
    older_than=st.none() | NUMBER.map(float), changed_documents=st.none() | NAMES, everything=st.booleans(),
)  # fmt: skip
ONE = Selector(tags=frozenset({"red"}), model="org/gemma:latest", namespace="", older_than=0.5)


@given(SELECTOR, st.floats(-1e12, 1e12))
@tries(200)
def test_what_is_read_is_what_was_written(selector, now):
    assert notice.decode(notice.encode(Notice(selector, now))) == Notice(selector, now)


@given(SELECTOR, st.floats(0, 2e9))
@tries(100)
def test_a_line_is_one_line(selector, now):
    """It lies in a log, behind a number and a space."""
    assert b"\n" not in notice.encode(Notice(selector, now))


@given(st.binary(max_size=200))
@tries(200)
def test_junk_is_nothing(line):
    assert notice.decode(line) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(["tags", "kb", "model", "namespace", "entry_ids", "older_than", "selector", "everything", "now"]),
    JSON,
)
@tries(300)
def test_any_value_in_any_place_is_read_as_what_it_says_or_not_at_all(name, value):
    told = orjson.loads(notice.encode(Notice(ONE, 1.0)))
    (told if name in told else told["selector"])[name] = value
    found = notice.decode(orjson.dumps(told))
    assert found is None or isinstance(found.selector, Selector)
    if found is not None:
        assert notice.decode(notice.encode(found)) == found


@pytest.mark.parametrize(
    "line",
    [
        b"", b"null", b"[]", b"{}", b"7", b'"x"',
        b'{"selector":{},"everything":true}',
        b'{"selector":{},"now":1}',
        b'{"everything":true,"now":1}',
        b'{"selector":{"moods":["glad"]},"everything":false,"now":1}',
        b'{"selector":{"tags":["red"],"moods":["glad"]},"everything":false,"now":1}',
        b'{"selector":{"tags":"red"},"everything":false,"now":1}',
        b'{"selector":{"tags":{"red":1}},"everything":false,"now":1}',
        b'{"selector":{"tags":[1]},"everything":false,"now":1}',
        b'{"selector":{"tags":null},"everything":false,"now":1}',
        b'{"selector":{"model":1},"everything":false,"now":1}',
        b'{"selector":{"model":null},"everything":false,"now":1}',
        b'{"selector":{"older_than":"x"},"everything":false,"now":1}',
        b'{"selector":{"older_than":true},"everything":false,"now":1}',
        b'{"selector":{},"everything":1,"now":1}',
        b'{"selector":{},"everything":null,"now":1}',
        b'{"selector":{},"everything":true,"now":null}',
        b'{"selector":{},"everything":true,"now":"soon"}',
        b'{"selector":{},"everything":true,"now":1,"mood":"glad"}',
    ],
)  # fmt: skip
def test_what_this_version_does_not_know_is_not_read(line):
    """It is taken for a removal of everything then; never for one of less than was meant."""
    assert notice.decode(line) is None


def test_cut_off_anywhere_it_is_nothing():
    line = notice.encode(Notice(ONE, 1.5))
    assert notice.decode(line) == Notice(ONE, 1.5)
    assert [n for n in range(len(line)) if notice.decode(line[:n]) is not None] == []
