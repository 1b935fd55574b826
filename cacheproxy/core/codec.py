"""Entry <-> bytes: format version, echo of the key, checksum. Plain data in, plain data out; no code can hide in it.

The stored form: magic, length of the facts (four bytes, big-endian), the facts as a JSON object, the contents, checksum
of all before. The facts state each content's length; contents of more than 1 KiB in all are one zstd frame. Whatever
the bytes say, no more is unpacked than they state and no more than 64 MiB.
"""

import hashlib
import math
import struct
from typing import Any

import orjson
import zstandard

from cacheproxy.core.model import Answer, Endpoint, Entry, Form

MAGIC = b"CPX3"
_HEAD = struct.Struct(">4sI")
_SUM_BYTES = 16
_SMALL = 1024
"""Bytes of contents up to which packing is not worth its time."""
_LARGE = 64 * 1024 * 1024
"""Bytes of contents above which they are kept as they are: nothing is ever unpacked to more."""
_LEVEL = 1
"""Of zstd: the next ones take half as long again for 2 to 8 % less, measured on answers of 1 to 50 kB."""


def encode(entry: Entry) -> bytes:
    """The stored form of `entry`."""
    answer = entry.answer
    contents = (answer.body, answer.pace)
    facts = {
        "key": entry.key.hex(),
        "owner": entry.owner.hex(),
        "credential": entry.credential.hex(),
        "namespace": entry.namespace,
        "endpoint": entry.endpoint.value,
        "model": entry.model,
        "stored_at": entry.stored_at,
        "fresh_until": entry.fresh_until,
        "expires_at": entry.expires_at,
        "took": entry.took,
        "asked_at": entry.asked_at,
        "tags": entry.tags,
        "knowledge": entry.knowledge,
        "prefix": entry.prefix,
        "epoch": entry.epoch,
        "form": answer.form.value,
        "content_type": answer.content_type,
        "has_usage": answer.has_usage,
        "one_form": answer.one_form,
        "id": answer.id_literal.decode("ascii"),
        "created": answer.created_literal.decode("ascii"),
        "request_id": answer.request_id,
        "status": answer.status,
        "tokens": answer.tokens,
        "lengths": [len(content) for content in contents],
    }
    head = orjson.dumps(facts)
    blob = b"".join((_HEAD.pack(MAGIC, len(head)), head, _pack(b"".join(contents))))
    return blob + _checksum(blob)


def decode(blob: bytes, key: bytes) -> Entry | None:
    """The entry in `blob`; None if it is damaged, of another format, or not the entry of `key`."""
    if len(blob) < _HEAD.size + _SUM_BYTES or _checksum(blob[:-_SUM_BYTES]) != blob[-_SUM_BYTES:]:
        return None
    return _read(blob, key, whole=True)


def described(start: bytes, key: bytes) -> Entry | None:
    """The entry of `key` without its contents, from the start of its stored form, which is not verified; None if the
    facts do not end there, or are not those of `key`."""
    return _read(start, key, whole=False) if len(start) >= _HEAD.size else None


def key_in(start: bytes) -> bytes | None:
    """The key that a stored form says it is of, from its start; None if that cannot be told."""
    if len(start) < _HEAD.size:
        return None
    magic, length = _HEAD.unpack_from(start)
    try:
        key = bytes.fromhex(orjson.loads(start[_HEAD.size : _HEAD.size + length])["key"])
    except (ValueError, KeyError, TypeError):
        return None
    return key if magic == MAGIC else None


def _read(blob: bytes, key: bytes, *, whole: bool) -> Entry | None:
    magic, length = _HEAD.unpack_from(blob)
    if magic != MAGIC:
        return None
    try:
        facts = orjson.loads(blob[_HEAD.size : _HEAD.size + length])
        if facts["key"] != key.hex():
            return None
        contents = blob[_HEAD.size + length : -_SUM_BYTES]
        body, pace = _contents(contents, *facts["lengths"]) if whole else (b"", b"")
        return _entry(facts, key, body, pace)
    except (ValueError, KeyError, TypeError, AttributeError, zstandard.ZstdError):
        return None


def _entry(facts: dict[str, Any], key: bytes, body: bytes, pace: bytes) -> Entry:
    return Entry(
        key=key,
        owner=bytes.fromhex(facts["owner"]),
        credential=bytes.fromhex(facts["credential"]),
        namespace=_text(facts["namespace"]),
        endpoint=Endpoint(facts["endpoint"]),
        model=_text(facts["model"]),
        answer=Answer(
            form=Form(facts["form"]),
            content_type=_line(facts["content_type"]),
            body=body,
            has_usage=bool(facts["has_usage"]),
            id_literal=facts["id"].encode("ascii"),
            created_literal=facts["created"].encode("ascii"),
            request_id=bool(facts["request_id"]),
            status=_status(facts["status"]),
            tokens=_tokens(*facts["tokens"]),
            pace=pace,
            one_form=bool(facts["one_form"]),
        ),
        stored_at=_seconds(facts["stored_at"]),
        fresh_until=_seconds(facts["fresh_until"]),
        expires_at=_seconds(facts["expires_at"]),
        took=_seconds(facts["took"]),
        asked_at=_seconds(facts["asked_at"]),
        tags=_texts(facts["tags"]),
        knowledge=_texts(facts["knowledge"]),
        prefix=_text(facts["prefix"]),
        epoch=_count(facts["epoch"]),
    )


def _pack(data: bytes) -> bytes:
    # A compressor of its own for each call: stores encode in their threads and on the loop.
    return zstandard.ZstdCompressor(level=_LEVEL).compress(data) if _SMALL < len(data) <= _LARGE else data


def _contents(data: bytes, body: object, pace: object) -> tuple[bytes, bytes]:
    """Body and pace, of these lengths, from their packed form."""
    at, total = _count(body), _count(body) + _count(pace)
    if _SMALL < total <= _LARGE:
        # What the frame itself states is what the library sets aside before it unpacks.
        if zstandard.frame_content_size(data) != total:
            raise ValueError("not as long as it says")
        data = zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
    if len(data) != total:
        raise ValueError("not as long as it says")
    return data[:at], data[at:]


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("not a count")
    return value


def _tokens(prompt: object, completion: object) -> tuple[int, int]:
    return _count(prompt), _count(completion)


def _status(value: object) -> int:
    """Success or the client's error: never one without a body, or one that opens something else."""
    status = _count(value)
    if status != 200 and not 400 <= status <= 499:
        raise ValueError("not a status that is kept")
    return status


def _seconds(value: object) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type] # just looked at
        raise ValueError("not a time")
    return float(value)  # type: ignore[arg-type]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("not a list")
    return tuple(map(_text, value))


def _line(text: str) -> str:
    """A header value that stays one line, whatever was written into the store."""
    if not text.isascii() or not text.isprintable():
        raise ValueError("not a header value")
    return text


def _checksum(blob: bytes) -> bytes:
    return hashlib.blake2b(blob, digest_size=_SUM_BYTES, person=b"entry").digest()
