"""What a caller wants of the cache: read to the letter, combined to the strictest, never a surprise."""

import time
from dataclasses import replace
from math import inf
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cacheproxy.core.controls import (
    MAX_NAME_BYTES,
    MOST_LABELS,
    NONE,
    BadControl,
    Controls,
    bases,
    decoded,
    joined,
    labels,
    read,
    spoken,
    understands,
)  # fmt: skip
from cacheproxy.core.knowledge import stated
from tests.core import shapes
from tests.examples import tries


def lines(*pairs: tuple[str, str]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.encode("latin-1"), value.encode()) for name, value in pairs)


def cache_control(*values: str) -> Controls | BadControl:
    return read(lines(*(("Cache-Control", value) for value in values)))


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("no-cache", Controls(no_cache=True)), ("no-store", Controls(no_store=True)),
        ("No-Cache", Controls(no_cache=True)),
        ("NO-STORE", Controls(no_store=True)), ("only-if-cached", Controls(only_if_cached=True)),
        ("max-age=0", Controls(max_age=0)),
        ("max-age=60", Controls(max_age=60)), ("s-maxage=1", Controls(max_age=1)),
        ("Max-Age = 60", Controls(max_age=60)),
        ('max-age="60"', Controls(max_age=60)), ("max-age=1.5", Controls(max_age=1.5)),
        ("min-fresh=5", Controls(min_fresh=5)),
        ("max-stale", Controls(max_stale=inf)), ("max-stale=10", Controls(max_stale=10)), ("no-transform", NONE),
        ("", NONE),
        ("no-cache, no-store", Controls(no_cache=True, no_store=True)),
        ("no-cache,max-age=5", Controls(no_cache=True, max_age=5)),
        ("\tno-store ,\t max-age=7\t", Controls(no_store=True, max_age=7)), ("no-store=1", Controls(no_store=True)),
        ('no-cache="authorization", no-store', Controls(no_cache=True, no_store=True)), ("no-storey", NONE),
        ("xno-store", NONE),
        ('x="no-store"', NONE), ('x="a, no-store"', NONE), ('x="a\\", no-store", max-age=3', Controls(max_age=3)),
        ("x=no-store", NONE),
    ],
)  # fmt: skip
def test_request_directives(value, wanted):
    """B52: RFC 9111 section 5.2.1, whatever the case, spacing and quoting."""
    assert cache_control(value) == wanted
    assert read(lines(("x-cache-control", value))) == wanted


@pytest.mark.parametrize(
    "value", [", no-store", "no-cache,, no-store", ",,no-store,", " , ,no-store", "max-age=1,,no-store", ",no-store"]
)
def test_empty_list_members_hide_nothing(value):
    """B52: RFC 9110 section 5.6.1.2: a recipient must accept them."""
    told = cache_control(value)
    assert isinstance(told, Controls)
    assert told.no_store


JUNK = ["a b", "=", "x=a b", '"x"', "max-age=5;x", "é", "@", "a=b=c", "(x)", "no cache", "x=\\", 'x="a"b']


@pytest.mark.parametrize(
    "value", [*(f"{junk}, no-store" for junk in JUNK), *(f"no-store, {junk}" for junk in [*JUNK, 'x="'])]
)
def test_junk_beside_a_directive_does_not_switch_it_off(value):
    """B52: whoever says no-store means it, whatever else a client library writes there."""
    told = cache_control(value)
    assert isinstance(told, BadControl) or told.no_store


@pytest.mark.parametrize(
    "value",
    ["max-age", "max-age=", "max-age=-1", "max-age=abc", "max-age=1e3", "max-age=0x10", 'max-age="x"', "max-age=NaN"],
)
def test_a_number_that_is_none_is_the_strictest(value):
    """RFC 9111 section 4.2.1: invalid freshness information means stale."""
    assert cache_control(value) == Controls(max_age=0)


@pytest.mark.parametrize("digits", ["99999999999", "9" * 30])
def test_a_number_too_large_is_large(digits):
    """RFC 9111 section 1.2.2: it counts as the greatest one, not as none."""
    told = cache_control(f"max-age={digits}, max-stale={digits}")
    assert isinstance(told, Controls)
    assert told.max_age >= 2**31
    assert told.max_stale >= 2**31


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (["no-cache", "no-store"], Controls(no_cache=True, no_store=True)),
        (["max-age=9", "max-age=5"], Controls(max_age=5)),
        (["max-age=9", "s-maxage=5"], Controls(max_age=5)), (["min-fresh=9", "min-fresh=5"], Controls(min_fresh=9)),
        (["max-stale", "max-stale=5"], Controls(max_stale=5)),
        (["max-age=9", "no-store"], Controls(no_store=True, max_age=9)),
        (["max-age=x", "max-age=5"], Controls(max_age=0)),
    ],
)  # fmt: skip
def test_the_strictest_of_several_counts(values, wanted, order):
    """B52: in one line, in two lines, in our alias, in any order."""
    ordered = values[::order]
    assert cache_control(", ".join(ordered)) == cache_control(*ordered) == wanted
    assert read(lines(("CACHE-CONTROL", ordered[0]), ("X-Cache-Control", ordered[1]))) == wanted


def test_pragma_counts_only_alone():
    """RFC 9111 section 5.4."""
    assert read(lines(("Pragma", "No-Cache"))) == Controls(no_cache=True)
    assert read(lines(("Pragma", "no-cache"), ("Cache-Control", "max-age=5"))) == Controls(max_age=5)
    assert read(lines(("Pragma", "x"))) == NONE


def test_no_controls():
    assert read(()) is NONE
    assert read(lines(("content-type", "no-store"), ("x-cache", "no-cache"))) is NONE


@pytest.mark.parametrize(("value", "ttl"), [("0", 0), ("60", 60), (" 5 ", 5), ("1.5", 1.5), ("2147483647", 2147483647)])
def test_lifetime(value, ttl):
    assert read(lines(("X-Cache-TTL", value))) == Controls(ttl=ttl)


def test_the_shorter_of_two_lifetimes_counts():
    assert read(lines(("X-Cache-TTL", "60"), ("x-cache-ttl", "5"))) == Controls(ttl=5)
    assert read(lines(("X-Cache-TTL", "5"), ("x-cache-ttl", "60"))) == Controls(ttl=5)
    assert read(lines(("X-Cache-TTL", "5")), {"ttl": 60}) == read(lines(("X-Cache-TTL", "60")), {"ttl": 5})


@pytest.mark.parametrize(
    "value", ["", "-1", "1e3", "abc", "60s", "1,2", "NaN", "inf", "٣", "0x1", "1.", ".5", "+1", "1 2", "\u00b2"]
)
def test_a_lifetime_that_is_none_is_refused(value):
    told = read(lines(("X-Cache-TTL", value)))
    assert isinstance(told, BadControl)
    assert told.name == "X-Cache-TTL"


@pytest.mark.parametrize(
    ("value", "namespace"),
    [
        ("a", "a"),
        (" a b ", "a b"),
        ("%C3%A9%2C%40%25", "é,@%"),
        ("é", "é"),
        ("A", "A"),
        ("tenant:A", "tenant:A"),
        ("A:x", "A:x"),
        ("", ""),
    ],
)
def test_namespace(value, namespace):
    """B32: any text, percent-encoded where it must be; it is only a name."""
    assert read(lines(("X-Cache-Namespace", value))) == Controls(namespace=namespace)


@pytest.mark.parametrize("value", ["%FF", "%C3", "%80abc", "a" * (MAX_NAME_BYTES + 1), "%41" * (MAX_NAME_BYTES + 1)])
def test_names_that_are_none_are_refused(value):
    """B32: junk is an error, not another cache."""
    for header in ("X-Cache-Namespace", "X-Cache-KB"):
        told = read(lines((header, value)))
        assert isinstance(told, BadControl)
        assert told.name == header


def test_namespaces_of_header_and_body_nest():
    """B32: neither can spell out the two together, nor take the other's place."""
    header = lines(("X-Cache-Namespace", "a"))
    both = read(header, {"namespace": "b"})
    swapped = read(lines(("X-Cache-Namespace", "b")), {"namespace": "a"})
    spelled = [read(lines(("X-Cache-Namespace", n))) for n in ("ab", "a,b", "a b", "a%00b")]
    spelled += [read((), {"namespace": n}) for n in ("ab", "a\0b")]
    found = [c.namespace for c in (both, swapped, read(header), read((), {"namespace": "b"}), *spelled)]
    assert both.namespace not in (*found[1:],)
    assert both != swapped


@pytest.mark.parametrize(
    ("values", "knowledge"),
    [
        (["docs"], "docs"), (["b, a"], "a,b"), (["b", "a"], "a,b"), (["a,a , a"], "a"), (["docs@7"], "docs@7"),
        (["", ","], ""),
        (["a%2Cb"], "a%2Cb"),
    ],
)  # fmt: skip
def test_knowledge_bases_have_one_text(values, knowledge):
    """Order and repetition do not matter; a comma inside a name is not one between names."""
    assert read(lines(*(("X-Cache-KB", v) for v in values))) == Controls(knowledge=knowledge)


NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@tries(200)
@given(st.lists(NAME, max_size=8), st.lists(NAME, max_size=3))
def test_a_name_may_be_any_text(names, more):
    """Percent-encoded where it has to be, and back: none becomes another, in a request's head, a backend's, or a rule."""
    written = ", ".join(quote(name, safe="") for name in names)
    told = read(lines(("X-Cache-Tags", written), ("X-Cache-KB", written)))
    assert set(told.tags) == set(names) == set(labels(written.encode()))
    assert {spoken(base) for base in bases(written.encode())} == {(name, name) for name in names}
    canonical = told.knowledge.split(",") if told.knowledge else []
    assert {spoken(base)[0] for base in canonical} == set(names)
    both = joined(told.knowledge, tuple(name for name in more if "@" not in name))
    assert set(decoded(both)) == {*names, *(name for name in more if "@" not in name)}


@tries(100)
@given(NAME, NAME)
def test_a_version_may_be_any_text(name, version):
    (base,) = bases(f"{quote(name, safe='')}@{quote(version, safe='')}".encode())
    assert spoken(base) == (name, f"{name}@{version}")
    assert stated([base]) == {name: version}


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (b"", 0), (b" , ,", 0), (b"a,b", 2), (b"a,a", 1), (b",".join(b"%d" % n for n in range(MOST_LABELS)), MOST_LABELS),
        (b",".join(b"%d" % n for n in range(MOST_LABELS + 1)), None), (b"x" * MAX_NAME_BYTES, 1),
        (b"x" * (MAX_NAME_BYTES + 1), None), (b"a," + b"x" * (MAX_NAME_BYTES + 1), None), (b"%C3,%A9", None),
        (b"caf\xe9", None), (b",".join([b"x" * 16_000] * 4 + [b"y" * 1600]), None), (b"%41" * MAX_NAME_BYTES, 1),
    ],
)  # fmt: skip
def test_a_backends_names_are_all_read_or_it_is_said(value, count):
    found = labels(value)
    assert (None if found is None else len(found)) == count
    assert (bases(value) is None) is (count is None)


@pytest.mark.parametrize(
    ("field", "wanted"),
    [
        ({}, NONE), ({"no-cache": True}, Controls(no_cache=True)), ({"no-store": True}, Controls(no_store=True)),
        ({"no-cache": False, "no-store": None}, NONE), ({"ttl": 60}, Controls(ttl=60)),
        ({"ttl": 0.5}, Controls(ttl=0.5)),
        ({"s-maxage": 5}, Controls(max_age=5)), ({"s-max-age": 5}, Controls(max_age=5)), ({"ttl": None}, NONE),
        ({"namespace": "n"}, Controls(namespace="n")), ({"namespace": None}, NONE), ({"namespace": ""}, NONE),
        ({"use-cache": True}, NONE),
    ],
)  # fmt: skip
def test_litellm_form(field, wanted):
    assert understands(field)
    assert read((), field) == wanted


def test_litellm_form_and_headers_combine_to_the_strictest():
    told = read(
        lines(("Cache-Control", "max-age=9, no-cache"), ("X-Cache-TTL", "5")),
        {"ttl": 9, "s-maxage": 3, "no-store": True},
    )
    assert told == Controls(no_cache=True, no_store=True, max_age=3, ttl=5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ttl", "60"), ("ttl", -1), ("ttl", True), ("ttl", []), ("ttl", 1e10), ("ttl", float("nan")),
        ("ttl", float("inf")),
        ("s-maxage", "1"), ("s-max-age", -0.5), ("no-cache", "true"), ("no-store", "false"), ("no-store", []),
        ("no-cache", {}),
        ("namespace", 5), ("namespace", ["a"]), ("namespace", "x" * (MAX_NAME_BYTES + 1)), ("namespace", "\ud800"),
    ],
)  # fmt: skip
def test_litellm_values_that_cannot_be_read_are_refused(name, value):
    """Also in bodies that only a lenient parser reads: it lets lone surrogates and NaN through."""
    told = read((), {name: value})
    assert isinstance(told, BadControl)
    assert told.name == f"cache.{name}"


@pytest.mark.parametrize(
    "field", [None, True, 5, "no-cache", [], ["no-cache"], {"a": 1}, {"no-cache": True, "x": 1}, {"No-Cache": True}]
)
def test_another_field_called_cache_is_not_ours(field):
    """An unknown field is the backend's, and stays in the body and in the key."""
    assert not understands(field)


names = st.sampled_from(
    [b"Cache-Control", b"x-cache-control", b"pragma", b"X-Cache-TTL", b"x-cache-namespace", b"X-CACHE-KB", b"other"]
)
texts = st.lists(
    st.sampled_from([b"no-store", b"max-age", b"=", b",", b" ", b'"', b"\\", b"5", b"%", b"%FF", b"\xff"]), max_size=8
).map(b"".join)
litellm = st.dictionaries(
    st.sampled_from(["ttl", "s-maxage", "no-cache", "no-store", "namespace", "use-cache"]), shapes.values
)


@given(st.lists(st.tuples(names, texts | st.binary(max_size=10)), max_size=4).map(tuple), st.none() | litellm)
@example((), {"namespace": "\udfff"})
def test_arbitrary_controls_never_raise(fields: Any, body_field: Any):
    told = read(fields, body_field)
    assert isinstance(told, Controls | BadControl)
    if isinstance(told, Controls):
        assert all(n is None or n >= 0 for n in (told.max_age, told.min_fresh, told.max_stale, told.ttl))
        assert replace(told) == told


LONG = [
    "a" + " " * 30_000 + "b", "a=" + " " * 30_000 + "b", '"' * 60_000, "a=" * 30_000, "\\" * 60_000,
    'a="' + "\\a" * 30_000,
    "," * 60_000, ", " * 30_000 + "a b",
]  # fmt: skip


@pytest.mark.parametrize("value", LONG, ids=lambda value: value[:6] + str(len(value)))
def test_a_long_line_is_read_in_linear_time(value):
    """B62: one header must not hold up every other request. (The bound is generous: quadratic time is minutes.)"""
    began = time.process_time()
    assert isinstance(cache_control(value), Controls | BadControl)
    assert time.process_time() - began < 2
