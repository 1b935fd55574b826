"""The two searches and their fusion in one command of the server, FT.HYBRID (Redis 8.4 and later)."""

from collections.abc import Mapping, Sequence
from typing import Any

from cacheproxy.core.fusion import K, ranks
from cacheproxy.core.model import Near
from cacheproxy.meaning import redisearch_schema as schema
from cacheproxy.meaning.redisearch_hits import Hits

_MEANING, _WORDS, _NAME = "meaning", "words", "__key"
_TEXTS = (schema.PARTITION, schema.EXPIRY, _MEANING, _WORDS, _NAME)
_LOADED = (_NAME, schema.KEY, schema.PARTITION, schema.EXPIRY, schema.VECTOR, schema.TEXT)


def command(alias: str, words: Sequence[str], limit: int, hits: Hits) -> list[str | bytes | float]:
    """The words of the command, for what `hits` are wanted of. `words`: some, as `core.words` gives them."""
    standing = schema.standing(hits.partition, hits.now)
    return [
        "FT.HYBRID", alias,
        "SEARCH", f"{standing} {schema.some_of(words, words)}", "SCORER", "BM25STD", "YIELD_SCORE_AS", _WORDS,
        "VSIM", f"@{schema.VECTOR}", "$q", "KNN", 2, "K", limit, "FILTER", standing, "YIELD_SCORE_AS", _MEANING,
        "COMBINE", "RRF", 4, "CONSTANT", K, "WINDOW", limit,
        "LIMIT", 0, limit,
        "LOAD", len(_LOADED), *(f"@{name}" for name in _LOADED),
        "PARAMS", 2, "q", hits.vector.tobytes(),
    ]  # fmt: skip


def found(reply: Any, hits: Hits) -> list[Near]:
    """What the answer has, in its order. Raises what one raises who reads nonsense."""
    documents = [_document(row) for row in _mapping(reply)["results"]]
    taken = {key: row for row in documents for key in hits.take([row])}
    similar = hits.similarities
    by_meaning = ranks(sorted((key for key in taken if _MEANING in taken[key]), key=lambda key: -similar[key]))
    by_words = ranks(sorted((key for key in taken if _WORDS in taken[key]), key=lambda key: -float(taken[key][_WORDS])))
    return [Near(key, similar[key], by_meaning.get(key), by_words.get(key), hits.texts[key]) for key in taken]


def _mapping(value: Any) -> dict[str, Any]:
    """A map of RESP3, or what stands for one in RESP2: names and values in turn."""
    pairs = value.items() if isinstance(value, Mapping) else zip(value[::2], value[1::2], strict=True)
    return {_text(name): content for name, content in pairs}


def _document(row: Any) -> dict[str, Any]:
    fields = _mapping(row)
    texts = {name: _text(fields[name]) for name in _TEXTS if name in fields}
    return fields | texts | {"id": texts[_NAME]}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
