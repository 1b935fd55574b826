"""Ranked lists made into one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.fusion import K, fused, ranks, reciprocal, reweighed, weighted
from cacheproxy.core.model import Near
from tests.examples import tries

A, B, C, D = b"a", b"b", b"c", b"d"
LISTS = st.lists(st.lists(st.binary(max_size=1), max_size=12), max_size=4)


def test_ranks_count_from_one_and_a_name_counts_once():
    assert ranks([B, A, B, C]) == {B: 1, A: 2, C: 3}
    assert ranks([]) == {}


def test_what_two_lists_agree_on_comes_first():
    assert reciprocal([ranks([A, B, C]), ranks([D, B])]) == [B, A, D, C]


def test_the_parts_are_those_of_the_formula():
    """1/(60+1) + 1/(60+3) against 1/(60+2) + 1/(60+2): the first is greater by a little."""
    assert K == 60
    assert reciprocal([ranks([A, B]), ranks([C, B, A])])[:2] == [A, B]
    assert 1 / 61 + 1 / 63 > 2 / 62
    assert reciprocal([ranks([A, B]), ranks([C, B, D, A])])[:2] == [B, A]


def test_equals_are_ordered_by_their_best_rank_and_then_by_themselves():
    assert reciprocal([ranks([B]), ranks([A])]) == [A, B]
    assert reciprocal([ranks([A]), ranks([B])]) == [A, B]
    assert weighted([{A: 1, B: 2}, {C: 1, B: 60}], [0, 0]) == [A, C, B]


def test_weights_turn_the_scales():
    meaning, words = ranks([A, B]), ranks([B, A])
    assert weighted([meaning, words], [2, 1]) == [A, B]
    assert weighted([meaning, words], [1, 2]) == [B, A]
    assert weighted([ranks([A]), ranks([B])], [0, 1]) == [B, A]


def test_lists_and_weights_belong_together():
    with pytest.raises(ValueError, match="zip"):
        weighted([ranks([A])], [1, 2])


def test_what_was_found_carries_its_ranks_and_similarity():
    found = fused([A, B, C], [D, B], {A: 0.9, B: 0.8, D: -0.1}, 3)
    assert found == [Near(B, 0.8, 2, 2), Near(A, 0.9, 1, None), Near(D, -0.1, None, 1)]
    assert fused([A], [], {}, 5) == [Near(A, None, 1, None)]
    assert fused([A], [B], {}, 0) == []


def test_what_was_found_can_be_weighed_again():
    """For part numbers and codes words may count more."""
    found = fused([A, B], [C, B], {}, 5)
    assert [near.key for near in found] == [B, A, C]
    assert [near.key for near in reweighed(found, 1, 3)] == [B, C, A]
    assert [near.key for near in reweighed(found, 0, 1)] == [C, B, A]
    assert [near.key for near in reweighed(found, 1, 0)] == [A, B, C]
    assert reweighed([], 1, 1) == []


@tries(100)
@given(LISTS)
def test_nothing_is_lost_or_added(lists):
    order = reciprocal([ranks(each) for each in lists])
    assert sorted(order) == sorted({element for each in lists for element in each})
    assert order == reciprocal([ranks(each) for each in reversed(lists)]), "whichever list is named first"


@tries(100)
@given(st.lists(st.binary(max_size=2), unique=True, max_size=12))
def test_one_list_keeps_its_order(ranking):
    assert reciprocal([ranks(ranking)]) == ranking
    assert reciprocal([ranks(ranking), ranks(ranking)]) == ranking
