"""How the vector index stands in Redis: its schema, its names, and what a query says.

A name tells what it holds: the format of the rows, the embedder, everything of the schema. So another embedder or
schema never meets these vectors; it has an index of its own. All names share one hash tag and no name has a word of
a question in it.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from redis.commands.search.query import Query
from redisvl.schema import IndexSchema

from cacheproxy.core.key import entry_id
from cacheproxy.core.model import Identity

FORMAT = "1"
"""Of a row. Raise it when the meaning of a field changes: rows of another format are left to expire."""

KEY, PARTITION, VECTOR, TEXT, WORDS, EXPIRY = "k", "p", "v", "t", "w", "x"
"""The fields of a row. `WORDS` are those of `TEXT`, which is kept for an embedder that comes later."""

DISTANCE = "d"
"""What a query gives besides: 1 - cosine."""

_DIGEST_BYTES = 8
_LONGEST = 4


class Algorithm(StrEnum):
    """How near vectors are found: HNSW by a graph, nearly always, FLAT by a look at each."""

    HNSW = "hnsw"
    FLAT = "flat"


@dataclass(frozen=True, slots=True)
class Plan:
    """What the index is made of. `links`, `effort` and `search_effort` are HNSW's M, EF_CONSTRUCTION and EF_RUNTIME."""

    identity: Identity
    algorithm: Algorithm = Algorithm.HNSW
    links: int = 16
    effort: int = 200
    search_effort: int = 64

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The fields that are searched, as redisvl wants them."""
        vector: dict[str, Any] = {
            "algorithm": self.algorithm.value, "dims": self.identity.dim, "datatype": "float32",
            "distance_metric": "cosine",
        }  # fmt: skip
        if self.algorithm is Algorithm.HNSW:
            vector |= {"m": self.links, "ef_construction": self.effort, "ef_runtime": self.search_effort}
        return [
            {"name": PARTITION, "type": "tag", "attrs": {"case_sensitive": True}},
            {"name": WORDS, "type": "text", "attrs": {"no_stem": True}},
            {"name": EXPIRY, "type": "numeric"},
            {"name": VECTOR, "type": "vector", "attrs": vector},
        ]


class Names:
    """What everything is called under one prefix.

    `alias`: what is searched, one for each embedder; `index`: what this plan is kept in; `lock`: who builds it.
    """

    def __init__(self, prefix: str, plan: Plan) -> None:
        self._stem = f"{prefix}:{{0}}"
        self._embedder = _digest(asdict(plan.identity))
        self.digest = _digest([FORMAT, asdict(plan.identity), plan.fields])
        self.index = f"{self._stem}:i:{FORMAT}:{self._embedder}:{self.digest}"
        self.alias = f"{self._stem}:a:{FORMAT}:{self._embedder}"
        self.lock = f"{self._stem}:l:{self.digest}"
        self._index = re.compile(re.escape(f"{self._stem}:i:") + r"(\w+):([0-9a-f]+):([0-9a-f]+)")

    def rows(self, index: str) -> str:
        """What the names of the rows of this index begin with."""
        return f"{self._stem}:v:{index.rpartition(':')[2]}:"

    def row(self, index: str, key: bytes) -> str:
        """The name of the row of an entry's key."""
        return self.rows(index) + entry_id(key)

    def owns(self, name: str) -> bool:
        """Whether this is the name of a row under the same prefix."""
        return name.startswith(f"{self._stem}:v:")

    def ours(self, index: str) -> bool:
        """Whether this is an index of the same prefix, of whatever format and embedder."""
        return self._index.fullmatch(index) is not None

    def readable(self, index: str) -> bool:
        """Whether it is one whose rows have the format of today."""
        found = self._index.fullmatch(index)
        return found is not None and found[1] == FORMAT

    def comparable(self, index: str) -> bool:
        """Whether its vectors are of the same embedder."""
        found = self._index.fullmatch(index)
        return found is not None and found[2] == self._embedder


def schema(name: str, names: Names, plan: Plan) -> IndexSchema:
    """The schema of the index of this plan, called `name`. No word is passed over: what is common is weighed so."""
    index = {"name": name, "prefix": names.rows(names.index), "storage_type": "hash", "stopwords": []}
    return IndexSchema.from_dict({"index": index, "fields": plan.fields})


def standing(partition: str, now: float) -> str:
    """The part of a query that leaves only rows of a partition that have not expired."""
    return f"@{PARTITION}:{{{partition}}} @{EXPIRY}:[({now:.6f} +inf]"


def nearest(partition: str, limit: int, now: float, *, crowd: bool = False) -> Query:
    """The rows nearest to the vector that is the parameter `q`. `crowd`: the partition is one (crowds.py)."""
    policy = " HYBRID_POLICY BATCHES" if crowd else ""
    asked = f"({standing(partition, now)})=>[KNN {limit} @{VECTOR} $q{policy} AS {DISTANCE}]"
    query = Query(asked).return_fields(PARTITION, EXPIRY, DISTANCE).return_field(KEY, decode_field=False)
    query = query.return_field(TEXT, decode_field=False)
    return query.sort_by(DISTANCE).paging(0, limit).dialect(2)


def wording(partition: str, words: Sequence[str], limit: int, now: float, *, crowd: bool = False) -> Query:
    """The rows that have some of these words, by BM25, with their vectors. In a crowd nearly every row has the usual
    words: there it is those that have one of the longest."""
    wanted = sorted(words, key=len, reverse=True)[:_LONGEST] if crowd else words
    query = Query(f"{standing(partition, now)} {some_of(words, wanted)}").scorer("BM25STD").with_scores()
    query = query.return_fields(PARTITION, EXPIRY).return_field(KEY, decode_field=False)
    query = query.return_field(TEXT, decode_field=False)
    return query.return_field(VECTOR, decode_field=False).paging(0, limit).dialect(2)


def size(partition: str) -> Query:
    """How many rows a partition has."""
    return Query(f"@{PARTITION}:{{{partition}}}").no_content().paging(0, 0).dialect(2)


def some_of(words: Sequence[str], wanted: Sequence[str]) -> str:
    """The part of a query that wants some of the words `wanted` (as `core.words` gives them) and ranks by all `words`.

    One clause wants, others rank: within a larger query a server may stop at the first word of a union that a row has,
    and weigh the row by that alone (seen with version 2.10 of the search module).
    """
    ranking = " ".join(f"~@{WORDS}:{term}" for term in kept(words))
    return f"(@{WORDS}:({'|'.join(kept(wanted))}))=>{{$weight:0;}} {ranking}"


def kept(words: Sequence[str]) -> list[str]:
    """The words as they stand in a row: so that none is a number or a word of the query language."""
    return [f"_{word}" for word in words]


def expired(now: float, limit: int) -> Query:
    """The names of rows that have expired."""
    return Query(f"@{EXPIRY}:[-inf {now:.6f}]").no_content().paging(0, limit).dialect(2)


def _digest(content: object) -> str:
    written = json.dumps(content, sort_keys=True, ensure_ascii=True).encode()
    return hashlib.blake2b(written, digest_size=_DIGEST_BYTES, person=b"index").hexdigest()
