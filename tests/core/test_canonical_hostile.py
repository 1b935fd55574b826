"""Bodies that lenient parsers read differently are never keyed, never refused if legal, and never raise."""

import json
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cacheproxy.core import canonical
from cacheproxy.core.model import Endpoint
from cacheproxy.core.outcome import Reason
from tests.core import shapes
from tests.core.shapes import BODY, form


def with_field(value: str, name: str = "x") -> bytes:
    return f'{{"model":"m","messages":[],"{name}":{value}}}'.encode()


@pytest.mark.parametrize(
    "raw",
    [
        b"", b" ", b"{", b"}", b'{"a":}', b'{"a":1,}', b"{'a':1}", b'{"a":1}{"a":1}', b'{"a":1} x', b"nul", b'{"a":01}',
        b'{"a":"\xff"}', b'{"a":"\n"}', b'{"a":+1}', b'{"a":.5}', b'{"a":"\\x"}', b"{a:1}", b'{"a":1 "b":2}',
        b"\xff\xfe",
    ],
)  # fmt: skip
def test_what_is_no_json_gives_none(raw):
    assert canonical.read(raw) is None


@pytest.mark.parametrize(
    "raw",
    [
        with_field("NaN"), with_field("Infinity"), with_field("-Infinity"), with_field("1e999"),
        with_field('"\\ud800"'),
        with_field('"\\udc00\\ud800"'), with_field("1", "\\udfff"), b"\xef\xbb\xbf{}", b"[]", b"null", b'"x"', b"1",
    ],
)  # fmt: skip
def test_what_backends_may_take_is_forwarded_but_never_keyed(raw):
    assert canonical.read(raw).trouble is Reason.UNKEYABLE


INTEGERS = [2**64, -(2**63) - 1, 10**20, -(10**20), 10**300, 12345678901234567890123]


@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize("template", ["%d", "[1,[%d]]", '{"a":{"b":%d}}', '[1e300,"5",%d]'])
def test_integers_beyond_64_bits_are_never_keyed(integer, template):
    """The parser makes floating point numbers of them, so that two would share a form."""
    assert form(with_field(template % integer)) is None
    assert form(with_field(template % integer, "temperature")) is None


@pytest.mark.parametrize("digits", [400, 4301, 100_000])
def test_integers_of_any_length_are_legal_json(digits):
    """An integer that no parser here can hold is still legal: forwarded, not a 400."""
    body = canonical.read(with_field("9" * digits))
    assert body is not None
    assert form(with_field("9" * digits)) is None


def test_integers_of_64_bits_are_keyed_exactly():
    forms = [form(with_field(str(i))) for i in (2**64 - 1, 2**64 - 2, 2**63, -(2**63), -(2**63) + 1, 2**53, 2**53 + 1)]
    assert None not in forms
    assert len(set(forms)) == len(forms)


def test_large_floating_point_numbers_are_keyed():
    """What looks like a huge integer only in its written-out form is none."""
    assert form(with_field("1e300")) == form(with_field("1.0E+300")) is not None


DUPLICATES = [
    b'{"a":1,"a":1}', b'{"a":1,"a":2}', b'{"a":"x","b":2,"a":"x"}', b'{"m":[{"role":"a","role":"b"}]}', b'{"":1,"":2}',
    b'{"a":{"b":{"c":1,"c":1}}}', b'{"a":1,"\\u0061":2}', b'{"a\\"":1,"a\\"":2}', b'{"\\\\":1,"\\\\":2}',
    b'{"stream":true,"stream":false}', b'{"a":[{}],"a":[{"b":"c"}]}', b'{"a":"\\\\","a":"\\""}',
]  # fmt: skip


@pytest.mark.parametrize("raw", DUPLICATES)
def test_duplicate_names_are_never_keyed(raw):
    """Backends differ in which of two equal names they take."""
    assert json.loads(raw)
    assert form(raw) is None


@given(shapes.objects.filter(bool), shapes.randoms, st.data())
def test_a_duplicate_anywhere_is_never_keyed(members, rnd, data):
    name = data.draw(st.sampled_from(sorted(members)))
    again = data.draw(shapes.values)
    pairs = [*members.items()]
    pairs.insert(data.draw(st.integers(0, len(pairs))), (name, again))
    inner = b",".join(shapes.write(n, rnd) + b":" + shapes.write(v, rnd) for n, v in pairs)
    around = data.draw(st.sampled_from([b"{%b}", b'{"z":{%b}}', b'{"z":[1,{%b},"\\""]}']))
    assert form(around % inner) is None


@pytest.mark.parametrize("depth", [100, 253, 254, 255, 500, 1023, 1024, 1025, 5000, 200_000])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_deep_nesting_never_raises(depth, brackets):
    """However deep: keyed or forwarded, never an exception."""
    opening = "[" if brackets == "[]" else '{"a":'
    raw = with_field(opening * depth + "1" + brackets[1] * depth)
    body = canonical.read(raw)
    assert body is not None
    shaped = canonical.form(Endpoint.CHAT, raw, body.fields) if body.trouble is None else None
    if depth <= 100:
        assert shaped is not None
    elif shaped is None:
        assert body.trouble in (None, Reason.UNKEYABLE)


def is_handled(raw: bytes) -> bool:
    """Read, keyed or not, without an exception; every question about it has an answer of its type."""
    body = canonical.read(raw)
    if body is None:
        return True
    for endpoint in Endpoint:
        if body.trouble is None:
            shaped = canonical.form(endpoint, raw, body.fields)
            assert shaped is None or json.loads(shaped) is not None
        assert canonical.choices_of(body.fields, endpoint) >= 1
    return isinstance(canonical.model_of(body.fields), str) and isinstance(canonical.wants_usage(body.fields), bool)


names = st.sampled_from(
    sorted({*canonical.IGNORED, *canonical.NULL_IS_ABSENT, *canonical.NUMBERS, "messages", "prompt"})
)


@given(st.dictionaries(names | shapes.texts, shapes.values, max_size=6), shapes.randoms)
def test_arbitrary_values_of_known_fields_never_raise(fields, rnd):
    assert is_handled(shapes.write(fields, rnd))


@given(st.binary(max_size=60))
@example(b'\xff\xfe{\x00"\x00')
@example(b"\x00\x00\x00{")
def test_arbitrary_bytes_never_raise(raw):
    assert is_handled(raw)


@given(shapes.objects, shapes.randoms, st.binary(max_size=3), st.data())
def test_damaged_bodies_never_raise(fields, rnd, junk, data):
    raw = shapes.write({**BODY, **fields}, rnd)
    at = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(at, min(len(raw), at + 4)))
    assert is_handled(raw[:at] + junk + raw[end:])


def test_a_large_body_is_read_in_linear_time():
    """Megabytes of backslashes, quotes and numbers are no attack."""
    text = "".join(random.Random(1).choices(['\\"', "\\\\", "\\u0022", "x", "é"], k=500_000))
    raw = f'{{"messages":["{text}",1e300,{"[1,2]," * 100_000}0]}}'.encode()
    assert form(raw) is not None
