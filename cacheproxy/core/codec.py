"""Entry <-> bytes: format version, echo of the key, checksum. Plain data in, plain data out; no code can hide in it."""

import hashlib
import math
import struct

import orjson

from cacheproxy.core.model import Answer, Endpoint, Entry, Form

MAGIC = b"CPX1"
_HEAD = struct.Struct(">4sI")
_SUM_BYTES = 16


def encode(entry: Entry) -> bytes:
    """The stored form of `entry`."""
    answer = entry.answer
    facts = {
        "key": entry.key.hex(),
        "credential": entry.credential.hex(),
        "namespace": entry.namespace,
        "endpoint": entry.endpoint.value,
        "model": entry.model,
        "stored_at": entry.stored_at,
        "fresh_until": entry.fresh_until,
        "expires_at": entry.expires_at,
        "took": entry.took,
        "form": answer.form.value,
        "content_type": answer.content_type,
        "has_usage": answer.has_usage,
        "id": answer.id_literal.decode("ascii"),
        "created": answer.created_literal.decode("ascii"),
        "request_id": answer.request_id,
    }
    head = orjson.dumps(facts)
    blob = b"".join((_HEAD.pack(MAGIC, len(head)), head, answer.body))
    return blob + _checksum(blob)


def decode(blob: bytes, key: bytes) -> Entry | None:
    """The entry in `blob`; None if it is damaged, of another format, or not the entry of `key`."""
    if len(blob) < _HEAD.size + _SUM_BYTES or _checksum(blob[:-_SUM_BYTES]) != blob[-_SUM_BYTES:]:
        return None
    magic, length = _HEAD.unpack_from(blob)
    if magic != MAGIC:
        return None
    try:
        facts = orjson.loads(blob[_HEAD.size : _HEAD.size + length])
        if facts["key"] != key.hex():
            return None
        answer = Answer(
            Form(facts["form"]),
            _line(facts["content_type"]),
            blob[_HEAD.size + length : -_SUM_BYTES],
            bool(facts["has_usage"]),
            facts["id"].encode("ascii"),
            facts["created"].encode("ascii"),
            bool(facts["request_id"]),
        )
        return Entry(
            key=key,
            credential=bytes.fromhex(facts["credential"]),
            namespace=str(facts["namespace"]),
            endpoint=Endpoint(facts["endpoint"]),
            model=str(facts["model"]),
            answer=answer,
            stored_at=_seconds(facts["stored_at"]),
            fresh_until=_seconds(facts["fresh_until"]),
            expires_at=_seconds(facts["expires_at"]),
            took=_seconds(facts["took"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _seconds(value: object) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type] # just looked at
        raise ValueError("not a time")
    return float(value)  # type: ignore[arg-type]


def _line(text: str) -> str:
    """A header value that stays one line, whatever was written into the store."""
    if not text.isascii() or not text.isprintable():
        raise ValueError("not a header value")
    return text


def _checksum(blob: bytes) -> bytes:
    return hashlib.blake2b(blob, digest_size=_SUM_BYTES, person=b"entry").digest()
