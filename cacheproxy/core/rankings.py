"""Answers that rank or score texts: whether one is complete for what was asked.

The shapes are those that servers give: `results` of Jina and Cohere (vLLM, llama.cpp, Infinity), `data` of vLLM's
scores, the bare list of text-embeddings-inference and SGLang, and SGLang's rows of `scores`.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from cacheproxy.core.model import Endpoint
from cacheproxy.core.outcome import Reason

_PAIRS = (
    ("text_1", "text_2"), ("data_1", "data_2"), ("queries", "documents"), ("queries", "items"), ("query", "items"),
)  # fmt: skip
"""The two sides of a score, under the names that requests have for them."""


def trouble_of(endpoint: Endpoint, document: object, fields: Mapping[str, Any] | None = None) -> Reason | None:
    """Why a parsed answer to a rerank or score request is not a complete one, or None. `fields`: the parsed request.

    Where the request does not tell how many results there must be, any unbroken number of them is complete.
    """
    if isinstance(document, dict) and (document.get("error") is not None or document.get("object") == "error"):
        return Reason.IN_BAND_ERROR
    asked = fields or {}
    if isinstance(document, dict) and endpoint is Endpoint.SCORE and isinstance(document.get("scores"), list):
        return _trouble_of_rows(document["scores"], _pairs(asked))
    results = _results(endpoint, document)
    if results is None:
        return Reason.MALFORMED
    if not results:
        return Reason.EMPTY
    seen: set[int] = set()
    for result in results:
        if not isinstance(result, dict):
            return Reason.MALFORMED
        index = result.get("index")
        if type(index) is not int or index < 0 or index in seen or not _is_score(_score(endpoint, result)):
            return Reason.MALFORMED
        seen.add(index)
    if endpoint is Endpoint.RERANK:
        return _trouble_of_ranks(seen, _count(asked.get("documents", asked.get("texts"))), asked.get("top_n"))
    return _trouble_of_count(seen, _pairs(asked))


def _results(endpoint: Endpoint, document: object) -> list[Any] | None:
    if isinstance(document, dict):
        results = document.get("data")
        if endpoint is Endpoint.RERANK:
            results = document.get("results", results)
        return results if isinstance(results, list) else None
    return document if isinstance(document, list) and endpoint is Endpoint.RERANK else None


def _score(endpoint: Endpoint, result: dict[str, Any]) -> object:
    score = result.get("score")
    return result.get("relevance_score", score) if endpoint is Endpoint.RERANK else score


def _is_score(value: object) -> bool:
    """Whether `value` is a finite number. A server whose model failed writes null for NaN."""
    return type(value) is int or (type(value) is float and isfinite(value))


def _trouble_of_ranks(seen: set[int], count: int | None, top: object) -> Reason | None:
    """Why these are not the ranks of `count` documents (None: unknown) cut at the best `top`, if it is a number > 0."""
    limit = top if type(top) is int and top > 0 else None
    if limit is None and top is not None and type(top) is not int:
        limit = len(seen)  # a limit of a kind we do not know: as many as came
    if limit is None:
        return _trouble_of_count(seen, count)
    if count is None:
        return Reason.MALFORMED if type(top) is int and len(seen) > top else None
    if max(seen) >= count:
        return Reason.MALFORMED
    if len(seen) < min(limit, count):
        return Reason.UNFINISHED_CHOICE
    # Servers that do not know `top_n` rank all documents, which is complete too.
    return None if len(seen) in (limit, count) else Reason.MALFORMED


def _trouble_of_count(seen: set[int], count: int | None) -> Reason | None:
    """Why the indices are not those of `count` things (None: unknown)."""
    if count is not None and len(seen) < count and max(seen) < count:
        return Reason.UNFINISHED_CHOICE
    return None if seen == set(range(len(seen) if count is None else count)) else Reason.MALFORMED


def _trouble_of_rows(rows: list[Any], count: int | None) -> Reason | None:
    """Why `rows` are not lists of scores, one for each of `count` things (None: unknown)."""
    if not rows:
        return Reason.EMPTY
    if not all(isinstance(row, list) and row and all(map(_is_score, row)) for row in rows):
        return Reason.MALFORMED
    if count is None or len(rows) == count:
        return None
    return Reason.UNFINISHED_CHOICE if len(rows) < count else Reason.MALFORMED


def _pairs(asked: Mapping[str, Any]) -> int | None:
    """How many scores a request asks for; None if it cannot be told."""
    for one, other in _PAIRS:
        if one in asked and other in asked:
            left, right = _count(asked[one]), _count(asked[other])
            if left is None or right is None:
                return None
            return right if left == 1 else left if left == right else None
    return None


def _count(value: object) -> int | None:
    """How many texts `value` is; None if it cannot be told (tokens; an object with a list of parts)."""
    if isinstance(value, str):
        return 1
    if isinstance(value, list) and value and all(isinstance(one, str | dict) for one in value):
        return len(value)
    return None
