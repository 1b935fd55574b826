"""A row of the index in Redis: as it is written there, and read again."""

from collections.abc import Sequence

import numpy as np

from cacheproxy.core.model import Row
from cacheproxy.core.words import words
from cacheproxy.meaning import redisearch_schema as schema
from cacheproxy.meaning.vectors import Floats

READ = (schema.KEY, schema.PARTITION, schema.TEXT, schema.EXPIRY, schema.VECTOR)
"""The fields from which a row is read, in this order."""


def written(row: Row, vector: Floats) -> dict[str, str | bytes]:
    """The fields of `row`, whose vector of length 1 this is."""
    return {
        schema.KEY: row.key, schema.PARTITION: row.partition.hex(), schema.VECTOR: vector.tobytes(),
        schema.TEXT: row.text.encode("utf-8", "surrogatepass"), schema.WORDS: " ".join(schema.kept(words(row.text))),
        schema.EXPIRY: f"{row.expires_at:.3f}",
    }  # fmt: skip


def read(values: Sequence[bytes | None]) -> Row | None:
    """A row as it is stored; None for what cannot be read as one, or was one a moment ago."""
    key, partition, text, expiry, vector = values
    if key is None or partition is None or text is None or expiry is None or vector is None or len(vector) % 4:
        return None
    try:
        asked, within, expires_at = (
            text.decode("utf-8", "surrogatepass"),
            bytes.fromhex(partition.decode()),
            float(expiry),
        )
    except ValueError:
        return None
    return Row(key, within, np.frombuffer(vector, np.float32), asked, expires_at)
