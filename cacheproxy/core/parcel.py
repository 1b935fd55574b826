"""An export, line by line: what each line says, written and read. Pure.

The first line tells where the file is from, and has the stamp of the embedder; then one line for each answer, with its
question where one is known; the last line has the counts, so that a file that was cut is noticed. A line is a JSON
object. The secret itself is in none; two fingerprints tell whether keys made there are found here.
"""

import base64
import binascii
import hashlib
import math
import struct
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from cacheproxy.core import codec, key
from cacheproxy.core.model import Entry, Identity

FORMAT = 1
"""Raise it when a line of an older version can no longer be read."""
KIND = "cacheproxy export"
_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Seal:
    """Under which secret, and for which backends, keys are made: a fingerprint of each, 32 hex digits."""

    secret: str
    realm: str


@dataclass(frozen=True, slots=True)
class Head:
    """The first line. `made_at`: seconds since the epoch; `embedder`: of the vectors, None if there are none;
    `removals`: how many had been counted; `about`: how many answers there were then."""

    seal: Seal
    made_at: float
    embedder: Identity | None
    removals: int
    about: int


@dataclass(frozen=True, slots=True)
class Asked:
    """The question of an answer: `partition`, 32 bytes, within which it is found; `text`; `vector`: floats of four
    bytes, little-endian."""

    partition: bytes
    text: str
    vector: bytes


@dataclass(frozen=True, slots=True)
class Item:
    """The line of an answer."""

    entry: Entry
    asked: Asked | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The last line: how many answers, and how many questions, the file has."""

    entries: int
    questions: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What is wrong with a line."""

    why: str


def seal(secret: bytes, realm: bytes) -> Seal:
    """The seal of what is stored under this secret for these backends."""
    return Seal(key.hint(secret, "export secret"), key.hint(secret, "export realm", realm))


def fingerprint(entry: Entry) -> str:
    """Tells a stored answer from any other, of the same key too: 32 hex digits."""
    times = struct.pack("<3d", entry.stored_at, entry.fresh_until, entry.expires_at)
    return hashlib.blake2b(entry.key + times + entry.answer.body, digest_size=16, person=b"export").hexdigest()


def head_line(head: Head) -> bytes:
    """The line that says it."""
    return _line({"kind": KIND, "format": FORMAT, **asdict(head)})


def item_line(item: Item) -> bytes:
    """The line that says it. The question has to be one that JSON can say."""
    entry, asked = item.entry, item.asked
    told: dict[str, Any] = {
        "id": key.entry_id(entry.key), "key": entry.key.hex(), "fingerprint": fingerprint(entry),
        "entry": _written(codec.encode(entry)),
    }  # fmt: skip
    if asked is not None:
        told["question"] = {
            "partition": asked.partition.hex(), "text": asked.text, "vector": _written(asked.vector),
        }  # fmt: skip
    return _line(told)


def end_line(end: End) -> bytes:
    """The line that says it."""
    return _line({"end": asdict(end)})


def broken_line() -> bytes:
    """In place of the last line, where an export could not be brought to its end."""
    return _line({"broken": "the store could not tell all; export again"})


def read_head(line: bytes) -> Head | Unreadable:
    """What a first line says."""
    told = _object(line)
    if told is None or told.get("kind") != KIND:
        return Unreadable("the first line is not that of an export of cacheproxy")
    if told.get("format") != FORMAT:
        return Unreadable(f"the file has another format than {FORMAT}, which is the one that this version reads")
    try:
        given = told["seal"]
        seal = Seal(_text(given["secret"]), _text(given["realm"]))
        identity = told["embedder"]
        embedder = None if identity is None else Identity(**identity)
        return Head(seal, _number(told["made_at"]), embedder, _count(told["removals"]), _count(told["about"]))
    except (ValueError, LookupError, TypeError):
        return Unreadable("the first line is damaged")


def read(line: bytes) -> Item | End | Unreadable:
    """What any other line says."""
    told = _object(line)
    if told is None:
        return Unreadable("is not a JSON object")
    if "broken" in told:
        return Unreadable("says that the export broke off")
    try:
        if "end" in told:
            return End(_count(told["end"]["entries"]), _count(told["end"]["questions"]))
        name = _bytes(told["key"], key.KEY_BYTES)
        entry = codec.decode(_unwritten(told["entry"]), name)
        asked = None if told.get("question") is None else _asked(told["question"])
    except (ValueError, LookupError, TypeError):
        return Unreadable("is not the line of an answer")
    if entry is None or fingerprint(entry) != told.get("fingerprint"):
        return Unreadable("has an answer that is damaged, or of another format")
    return Item(entry, asked)


def is_unicode(text: str) -> bool:
    """Whether JSON can say it: not so half of a pair of surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _asked(told: dict[str, Any]) -> Asked:
    vector = _unwritten(told["vector"])
    if len(vector) % _FLOAT_BYTES:
        raise ValueError("not a vector")
    return Asked(_bytes(told["partition"], key.KEY_BYTES), _text(told["text"]), vector)


def _line(told: dict[str, Any]) -> bytes:
    return orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        told = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return told if isinstance(told, dict) else None


def _written(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _unwritten(text: object) -> bytes:
    try:
        return base64.b64decode(_text(text), validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None


def _bytes(text: object, length: int) -> bytes:
    found = bytes.fromhex(_text(text))
    if len(found) != length:
        raise ValueError("not as long as it must be")
    return found


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("not a count")
    return value


def _number(value: object) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type] # just looked at
        raise ValueError("not a number")
    return float(value)  # type: ignore[arg-type]
