"""Where values deep inside a body stand in its bytes."""

import json

from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.places import exchanged, places
from tests.core import shapes
from tests.core.shapes import plain


def every_path(value, path=()):
    """The path of every value inside, the whole left out."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, below in inner:
        yield (*path, part), below
        yield from every_path(below, (*path, part))


@given(shapes.objects, shapes.randoms, st.data())
def test_finds_every_value(value, rnd, data):
    """Any set of places, however the body is formatted."""
    raw = shapes.write(value, rnd)
    known = dict(every_path(value))
    leaves = [path for path in known if not any(other[: len(path)] == path and other != path for other in known)]
    wanted = data.draw(st.lists(st.sampled_from(leaves), unique=True)) if leaves else []
    found = places(raw, wanted)
    assert set(found) == set(wanted)
    for path, (start, end) in found.items():
        assert plain(json.loads(raw[start:end])) == plain(known[path])


def test_what_is_not_there_is_left_out():
    """Another kind of container, too few elements, other names."""
    raw = b'{"a": [1, {"b": "x"}], "c": {"0": 1}, "e": "{", "f": "[1]"}'
    asked = [("a", 1, "b"), ("a", 2), ("a", "b"), ("c", 0), ("d",), ("c", "x", "y"), ("e", "x"), ("f", 0)]
    assert places(raw, asked) == {("a", 1, "b"): (16, 19)}


def test_exchanges_only_what_is_named():
    """Spans in any order; the rest stays."""
    raw = b'{"a":1,"b":2,"c":3}'
    assert exchanged(raw, {(11, 12): b"[]", (5, 6): b'"x"'}) == b'{"a":"x","b":[],"c":3}'
    assert exchanged(raw, {}) == raw
