"""Keys: keyed BLAKE2b over length-prefixed parts, so that no part can spell out another and nobody without the
secret can compute or reverse one. Every key has a fixed size."""

import hashlib
import struct
from collections.abc import Iterable

KEY_BYTES = 32
FINGERPRINT_BYTES = 16
SECRET_BYTES = 32

_VERSION = b"1"
"""Raise it when the meaning of a part changes: old entries then never match."""


def _digest(secret: bytes, purpose: bytes, parts: Iterable[bytes], size: int) -> bytes:
    digest = hashlib.blake2b(key=secret, digest_size=size, person=purpose)
    buffer = []
    for part in parts:
        buffer.append(len(part).to_bytes(8, "big"))
        buffer.append(part)
    digest.update(b"".join(buffer))
    return digest.digest()


def _lines(fields: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
    flat: list[bytes] = []
    for name, value in fields:
        flat += (name, value)
    return [len(flat).to_bytes(8, "big"), *flat]


def fingerprint(secret: bytes, credential: Iterable[tuple[bytes, bytes]]) -> bytes:
    """16 bytes that stand for a credential (names and values in order); the absent one has a fingerprint too."""
    return _digest(secret, b"credential", _lines(credential), FINGERPRINT_BYTES)


def exact(  # noqa: PLR0913 - every part of the key, by name
    secret: bytes,
    *,
    realm: bytes,
    owner: bytes,
    namespace: str,
    knowledge: str,
    target: bytes,
    fields: Iterable[tuple[bytes, bytes]],
    body: bytes,
) -> bytes:
    """The exact key (32 bytes).

    `realm`: which backends answer; `owner`: whose scope; `namespace`: the caller's own cache within that
    scope; `knowledge`: the declared knowledge bases; `target`: the request target with its query; `fields`: the
    keyed request fields, lower-cased and sorted; `body`: the canonical form.
    """
    parts = [_VERSION, realm, owner, namespace.encode(), knowledge.encode(), target]
    return _digest(secret, b"exact", [*parts, *_lines(fields), body], KEY_BYTES)


def partition(  # noqa: PLR0913 - every part of it, by name
    secret: bytes,
    *,
    realm: bytes,
    owner: bytes,
    namespace: str,
    knowledge: str,
    target: bytes,
    fields: Iterable[tuple[bytes, bytes]],
    frame: bytes,
) -> bytes:
    """The semantic partition (32 bytes): the parts of an exact key, with the `frame` of a question in place of the
    body. Questions are compared within one alone."""
    parts = [_VERSION, realm, owner, namespace.encode(), knowledge.encode(), target]
    return _digest(secret, b"partition", [*parts, *_lines(fields), frame], KEY_BYTES)


def digest(secret: str) -> bytes:
    """The SHA-256 digest by which a caller's key is known in the configuration; `secret` is the key, or
    ``sha256:`` and the digest in hexadecimal digits."""
    given = secret.removeprefix("sha256:")
    return bytes.fromhex(given) if given != secret else hashlib.sha256(secret.encode()).digest()


def group_owner(secret: bytes, kind: str, name: str) -> bytes:
    """The owner (16 bytes) of a scope that several credentials share."""
    return _digest(secret, b"owner", [kind.encode(), name.encode("utf-8", "surrogatepass")], FINGERPRINT_BYTES)


def hint(secret: bytes, kind: str, *parts: bytes) -> str:
    """32 hex digits that stand for `parts` before a backend, another value for each `kind`."""
    return _digest(secret, b"hint", [kind.encode(), *parts], FINGERPRINT_BYTES).hex()


def variant(key: bytes, number: int) -> bytes:
    """The key of the answer number `number` (from 0) to the request of `key`."""
    if number == 0:
        return key
    return hashlib.blake2b(key + number.to_bytes(8, "big"), digest_size=KEY_BYTES, person=b"variant").digest()


def identity(secret: bytes, key: bytes, asked_at: float) -> bytes:
    """16 bytes that name the answer to the request of `key` that was asked for at `asked_at`: the same for the running
    and the stored one, and not to be guessed."""
    return _digest(secret, b"answer", [key, struct.pack(">d", asked_at)], 16)


def entry_id(key: bytes) -> str:
    """The opaque id of an entry, as callers see it: 32 hex digits of a hash of the key."""
    return hashlib.blake2b(key, digest_size=16, person=b"entry").hexdigest()
