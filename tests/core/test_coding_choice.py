"""The coding of an answer is the one its caller weighs highest (RFC 9110 section 12.5.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.coding import choose


@pytest.mark.parametrize(
    ("fields", "coding"),
    [
        # what clients and browsers send
        ([], None), ([b""], None), ([b"gzip, deflate"], b"gzip"), ([b"gzip, deflate, br, zstd"], b"zstd"),
        ([b"gzip, deflate, br"], b"br"), ([b"identity"], None), ([b"deflate"], b"deflate"), ([b"*"], b"zstd"),
        # weights
        ([b"gzip;q=1.0, br;q=0.9, zstd;q=0.8"], b"gzip"), ([b"gzip;q=0.5, deflate;q=0.501"], b"deflate"),
        ([b"gzip;q=0.001"], b"gzip"), ([b"zstd;q=0, br;q=0.0, gzip;q=0.000, deflate"], b"deflate"),
        ([b"gzip;q=0"], None), ([b"gzip ; q=0.5 , br\t;\tq=0.6"], b"br"), ([b"gzip;Q=0.5, br;q=0.4"], b"gzip"),
        ([b"br;q=1.000, gzip;q=1."], b"br"), ([b"gzip;q=0., deflate"], b"deflate"),
        # weights that are none
        ([b"gzip;q=1.001"], None), ([b"gzip;q=2"], None), ([b"gzip;q=0.1234"], None), ([b"gzip;q=-1"], None),
        ([b"gzip;q=.5"], None), ([b"gzip;q="], None), ([b"gzip;q"], None), ([b"gzip;"], None), ([b"gzip;q=a"], None),
        ([b"gzip;q = 1"], None), ([b"gzip;q=1;q=0"], None), ([b"gzip;level=1"], None), ([b"gzip;q=nan"], None),
        ([b"gzip;q=1e0"], None), ([b"gzip;q=x, deflate;q=0.1"], b"deflate"), ([b"gzip;q=\xd9\xa1"], None),
        # the plain form
        ([b"identity, gzip"], b"gzip"), ([b"identity;q=1, gzip;q=0.9"], None), ([b"identity;q=0.5, gzip;q=0.5"], b"gzip"),
        ([b"identity;q=0.4, gzip;q=0.5"], b"gzip"), ([b"identity;q=0"], None), ([b"identity;q=0, rot13"], None),
        # any
        ([b"*;q=0"], None), ([b"*;q=0, gzip"], b"gzip"), ([b"gzip, *;q=0"], b"gzip"), ([b"*, zstd;q=0"], b"br"),
        ([b"zstd;q=0, br;q=0, gzip;q=0, *"], b"deflate"), ([b"gzip;q=0.5, *;q=0.8"], b"zstd"),
        ([b"gzip;q=0.5, *;q=0.3"], b"gzip"), ([b"zstd;q=0, br;q=0, gzip;q=0, deflate;q=0, *"], None),
        ([b"zstd;q=.5, br;q=0.5, gzip;q=0.5, deflate;q=0.5, *;q=0.8"], None), ([b"*;q=0.5, identity"], None),
        # several lines, other names, other writings
        ([b"gzip;q=0.5", b"br;q=0.6"], b"br"), ([b"", b"gzip"], b"gzip"), ([b"gzip", b"identity;q=0.1"], b"gzip"),
        ([b"x-gzip"], b"gzip"), ([b"X-GZIP;q=0.9, br;q=0.8"], b"gzip"), ([b"GZip"], b"gzip"), ([b"BR"], b"br"),
        ([b"x-gzip;q=0, *;q=0"], None), ([b"x-br"], None), ([b"gzipx, xgzip, g zip"], None), ([b"rot13, compress"], None),
        ([b",, gzip ,,"], b"gzip"), ([b"gzip;q=0, gzip"], None), ([b"gzip, gzip;q=0"], b"gzip"), ([b"\xff, br"], b"br"),
    ],
)  # fmt: skip
def test_which_coding_is_chosen(fields, coding):
    """B41: and none where the caller cannot be sure to read it."""
    assert choose(fields) == coding


@given(st.lists(st.binary(max_size=40) | st.text("gzipbrdstd*;q=01., identy", max_size=40).map(str.encode), max_size=4))
def test_any_field_is_answered(fields):
    assert choose(fields) in (None, b"zstd", b"br", b"gzip", b"deflate")


codings = st.sampled_from([b"zstd", b"br", b"gzip", b"deflate", b"identity", b"*", b"rot13"])


@given(st.dictionaries(codings, st.integers(0, 1000), max_size=7), st.randoms(use_true_random=False))
def test_the_highest_weight_wins_in_any_order(weights, rnd):
    """By the letter of the RFC, told another way; ties go by our own order."""
    members = [b"%b;q=%d.%03d" % (c, w // 1000, w % 1000) for c, w in weights.items()]
    rnd.shuffle(members)
    wild = weights.get(b"*", 0)
    ours = [(weights.get(c, wild), -rank, c) for rank, c in enumerate([b"zstd", b"br", b"gzip", b"deflate"])]
    weight, _, best = max(ours)
    expected = None if weight == 0 or weight < weights.get(b"identity", wild) else best
    assert choose(members) == choose([b", ".join(members)]) == expected
