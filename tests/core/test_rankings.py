"""Ranks and scores: complete for what was asked, or the reason why not."""

import pytest

from cacheproxy.core.model import Endpoint
from cacheproxy.core.outcome import Reason
from cacheproxy.core.rankings import trouble_of

THREE = {"query": "q", "documents": ["a", "b", "c"]}


def ranked(*indices: int, score: object = 0.5) -> dict:
    return {"results": [{"index": index, "relevance_score": score} for index in indices]}


def scored(*indices: int) -> dict:
    return {"data": [{"index": index, "score": 0.5} for index in indices]}


@pytest.mark.parametrize(
    ("document", "asked", "reason"),
    [
        (ranked(2, 0, 1), THREE, None), (ranked(0, 1), THREE, Reason.UNFINISHED_CHOICE),
        (ranked(0, 1, 2, 3), THREE, Reason.MALFORMED), (ranked(0, 1, 1), THREE, Reason.MALFORMED),
        (ranked(0, 0), {}, Reason.MALFORMED), (ranked(1, 0), {}, None), (ranked(-1), {}, Reason.MALFORMED),
        (ranked(2), {**THREE, "top_n": 1}, None), (ranked(0, 1, 2), {**THREE, "top_n": 1}, None),
        (ranked(0, 1), {**THREE, "top_n": 1}, Reason.MALFORMED), (ranked(3), {**THREE, "top_n": 1}, Reason.MALFORMED),
        (ranked(2), {**THREE, "top_n": 2}, Reason.UNFINISHED_CHOICE), (ranked(0, 1, 2), {**THREE, "top_n": 9}, None),
        (ranked(), THREE, Reason.EMPTY), (ranked(0, score=None), {}, Reason.MALFORMED),
        (ranked(0, score=True), {}, Reason.MALFORMED), (ranked(0, score=float("nan")), {}, Reason.MALFORMED),
        ({"results": [5]}, {}, Reason.MALFORMED), ({}, {}, Reason.MALFORMED), ([], {}, Reason.EMPTY),
        ([{"index": 0, "score": 1}], {"query": "q", "texts": ["a"]}, None), ("x", {}, Reason.MALFORMED),
        ({"error": "x"}, THREE, Reason.IN_BAND_ERROR), ({"object": "error"}, THREE, Reason.IN_BAND_ERROR),
    ],
)  # fmt: skip
def test_ranks(document, asked, reason):
    assert trouble_of(Endpoint.RERANK, document, asked) is reason


@pytest.mark.parametrize(
    ("document", "asked", "reason"),
    [
        (scored(0), {"text_1": "a", "text_2": "b"}, None), (scored(0, 1), {"text_1": "a", "text_2": ["b", "c"]}, None),
        (scored(0), {"text_1": "a", "text_2": ["b", "c"]}, Reason.UNFINISHED_CHOICE),
        (scored(0, 1), {"text_1": "a", "text_2": "b"}, Reason.MALFORMED),
        (scored(0, 2), {"text_1": ["a", "b"], "text_2": ["c", "d"]}, Reason.MALFORMED),
        (scored(0, 0), {}, Reason.MALFORMED), (scored(), {}, Reason.EMPTY), ([], {}, Reason.MALFORMED),
        ({"scores": [[0.1, 0.9]]}, {"query": "q", "items": ["a"]}, None),
        ({"scores": [[0.1]]}, {"query": "q", "items": ["a", "b"]}, Reason.UNFINISHED_CHOICE),
        ({"scores": [[]]}, {}, Reason.MALFORMED), ({"scores": []}, {}, Reason.EMPTY),
    ],
)  # fmt: skip
def test_scores(document, asked, reason):
    assert trouble_of(Endpoint.SCORE, document, asked) is reason
