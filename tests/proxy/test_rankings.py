"""Rerank and score: whole answers are kept, others pass."""

import pytest

from tests.fakes.backend import gives

RERANK = {"id": "r", "results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]}
SCORE = {"id": "s", "object": "list", "data": [{"index": 0, "object": "score", "score": 0.5}]}
CASES = {
    "/v1/rerank": ({"model": "m", "query": "q", "documents": ["a", "b"]}, RERANK),
    "/v1/score": ({"model": "m", "text_1": "a", "text_2": "b"}, SCORE),
}


@pytest.mark.parametrize("path", CASES)
async def test_second_call_is_a_hit(client, backend, path):
    body, document = CASES[path]
    backend.script = gives(document)
    answers = [await client.send(b, path=path) for b in (body, dict(reversed(body.items())), {**body, "user": "u"})]
    assert [a.cache for a in answers] == ["MISS", "HIT", "HIT"]
    assert {n: v for n, v in answers[1].json.items() if n != "id"} == {n: v for n, v in document.items() if n != "id"}
    assert (await client.send({**body, "model": "n"}, path=path)).cache == "MISS"


BROKEN = [
    {}, {"results": []}, {"data": []}, {"results": [{"index": 0}]}, {"data": [{"index": 0, "score": None}]},
    {"results": [{"index": 0, "relevance_score": 1}] * 2}, {"error": {"message": "no"}}, [], {"results": "x"},
]  # fmt: skip


async def test_a_result_that_is_missing_shows(client, backend):
    """As many as documents were given, or as were wanted."""
    backend.script = gives(RERANK)
    for more, state in (({}, "MISS"), ({"top_n": 2}, "HIT")):
        body = {"model": "m", "query": "q", "documents": ["a", "b", "c"], **more}
        assert [(await client.send(body, path="/v1/rerank")).cache for _ in range(2)] == ["MISS", state]


@pytest.mark.parametrize("document", BROKEN)
@pytest.mark.parametrize("path", CASES)
async def test_what_is_no_whole_answer_is_not_kept(client, backend, path, document):
    """B55's kind."""
    backend.script = gives(document)
    body, _ = CASES[path]
    assert [(await client.send(body, path=path)).cache for _ in range(2)] == ["MISS", "MISS"]
