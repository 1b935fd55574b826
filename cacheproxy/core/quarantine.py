"""Names of what must not be answered by meaning: hashes of a fixed size, from which nobody without the secret learns a
question.

What an operator called different has two names, since of the older question only its answer's id may be known: one by
the words of both within their partition, and one by the id and the other's words. Both hold whichever question was
first; a question that is like no other has two names in the same way. Words are compared without regard to case, forms
of characters and spaces.
"""

import hashlib
import unicodedata
from typing import NamedTuple

NAME_BYTES = 32


class Side(NamedTuple):
    """A question: the id of the answer that is stored for it, or would be, and its words."""

    entry_id: str
    text: str


def words_of(secret: bytes, text: str) -> bytes:
    """The name of a question's words (32 bytes)."""
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return _name(secret, b"words", plain.encode("utf-8", "surrogatepass"))


def pair(secret: bytes, partition: bytes, one: bytes, other: bytes) -> bytes:
    """The name of two questions in a partition, by the names of their words; in either order the same."""
    return _name(secret, b"pair", partition, *sorted((one, other)))


def beside(secret: bytes, entry_id: str, words: bytes) -> bytes:
    """The name of an answer and a question that it does not answer."""
    return _name(secret, b"beside", entry_id.encode(), words)


def alone_by_words(secret: bytes, partition: bytes, words: bytes) -> bytes:
    """The name of a question that is like no other, by the name of its words."""
    return _name(secret, b"alone by words", partition, words)


def alone(secret: bytes, entry_id: str) -> bytes:
    """The name of a question that is like no other, by the id of its answer."""
    return _name(secret, b"alone", entry_id.encode())


def called_wrong(secret: bytes, entry_id: str) -> bytes:
    """The name under which it is remembered that an answer was called wrong."""
    return _name(secret, b"wrong", entry_id.encode())


def between(secret: bytes, partition: bytes, asked: Side, stored: Side) -> tuple[bytes, ...]:
    """The names any of which keeps `asked` from having the answer of `stored`."""
    words, others = words_of(secret, asked.text), words_of(secret, stored.text)
    return (
        alone(secret, asked.entry_id),
        alone(secret, stored.entry_id),
        alone_by_words(secret, partition, words),
        alone_by_words(secret, partition, others),
        pair(secret, partition, words, others),
        beside(secret, stored.entry_id, words),
        beside(secret, asked.entry_id, others),
    )


def _name(secret: bytes, kind: bytes, *parts: bytes) -> bytes:
    digest = hashlib.blake2b(key=secret, digest_size=NAME_BYTES, person=b"quarantine")
    for part in (kind, *parts):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()
