"""One member of a JSON object changes, and every other byte stays."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import splice
from tests.core import shapes
from tests.core.shapes import plain

named = st.dictionaries(st.text("ab ,:{}[]", max_size=4), shapes.values, min_size=1, max_size=5)
"""Objects whose names are plain, though they may be written with escapes."""


@given(shapes.objects, shapes.randoms)
def test_members_agree_with_a_parser(value, rnd):
    """Names, values and their order, whatever the formatting."""
    raw = shapes.write(value, rnd)
    found = splice.members(raw)
    assert [json.loads(b'"' + m.name + b'"') for m in found] == list(value)
    assert [plain(json.loads(raw[m.value : m.end])) for m in found] == [plain(v) for v in value.values()]
    heads = [raw[m.start : m.value].rstrip().removesuffix(b":") for m in found]
    assert [json.loads(head) for head in heads] == list(value)


@given(named, shapes.randoms, st.data())
def test_remove_takes_one_member_and_its_comma(value, rnd, data):
    """What is left parses to the rest; only one stretch is gone: the member, its comma, white space beside it."""
    raw = shapes.write(value, rnd)
    found = splice.members(raw)
    i = data.draw(st.integers(0, len(found) - 1))
    left = splice.remove(raw, list(value)[i].encode())
    rest = {n: v for j, (n, v) in enumerate(value.items()) if j != i}
    assert plain(json.loads(left)) == plain(rest)
    assert list(json.loads(left)) == list(rest)
    cut = len(raw) - len(left)
    starts = range(max(0, found[i].end - cut), found[i].start + 1)
    gone = [raw[s : s + cut] for s in starts if raw[:s] + raw[s + cut :] == left]
    member = raw[found[i].start : found[i].end]
    assert any(g.count(member) and g.replace(member, b"", 1).strip() in (b"", b",") for g in gone)


@given(named, shapes.values, shapes.randoms, st.data())
def test_replace_changes_one_value(value, new, rnd, data):
    raw, put = shapes.write(value, rnd), shapes.write(new, rnd)
    i = data.draw(st.integers(0, len(value) - 1))
    name, member = list(value)[i], splice.members(raw)[i]
    changed = splice.replace(raw, name.encode(), put)
    assert plain(json.loads(changed)) == plain({**value, name: new})
    assert changed == raw[: member.value] + put + raw[member.end :]


@given(shapes.objects, shapes.values, shapes.randoms)
def test_replace_puts_an_absent_member_in(value, new, rnd):
    """Every byte that was there stays, in order, around one insertion."""
    raw, put = shapes.write(value, rnd), shapes.write(new, rnd)
    changed = splice.replace(raw, b"new name", put)
    assert plain(json.loads(changed)) == plain({**value, "new name": new})
    added = len(changed) - len(raw)
    assert any(changed[:i] + changed[i + added :] == raw for i in range(len(raw)))


@given(shapes.objects, shapes.randoms)
def test_removing_what_is_absent_changes_nothing(value, rnd):
    raw = shapes.write(value, rnd)
    assert splice.remove(raw, b"no such name") == raw


@pytest.mark.parametrize(
    ("raw", "name", "left"),
    [
        (b'{"cache":1}', b"cache", b"{}"), (b'{ "cache" : {"a":[1,"}"]} }', b"cache", b"{  }"),
        (b'{"a":"\\"cache\\":1","cache":2}', b"cache", b'{"a":"\\"cache\\":1"}'),
        (b'{"cache":1, "b":2}', b"cache", b'{"b":2}'),
        (b'{"a":{"cache":1},"cache":2,"b":3}', b"cache", b'{"a":{"cache":1},"b":3}'),
        (b'{"a":1, "cache":2}', b"cache", b'{"a":1}'),
        (b' \r\n{"a":[{"cache":1}]}\n', b"cache", b' \r\n{"a":[{"cache":1}]}\n'),
    ],
)  # fmt: skip
def test_only_the_top_level_is_touched(raw, name, left):
    """The same name inside a value or a text is not the member."""
    assert splice.remove(raw, name) == left


@given(st.binary(max_size=40) | st.lists(st.sampled_from([*b'{}[]",:\\ 1a']), max_size=40).map(bytes))
def test_other_bytes_give_an_end_not_an_error(raw):
    """For what is no JSON object the result is open, but there is one."""
    for member in splice.members(raw):
        assert 0 <= member.start < member.end <= len(raw)
    assert isinstance(splice.remove(raw, b"a"), bytes)
    assert isinstance(splice.replace(raw, b"a", b"1"), bytes)


def test_large_bodies_take_linear_time():
    """Megabytes of quotes, brackets and blanks; any quadratic step would run past the test's time."""
    text = "".join(random.Random(1).choices('"\\[]{},: x', k=1_000_000))
    value = {"a": text, "b": [[text]], "cache": 1, "c": [[]] * 200_000}
    raw = json.dumps(value, indent=1).encode()
    del value["cache"]
    assert json.loads(splice.remove(raw, b"cache")) == value
