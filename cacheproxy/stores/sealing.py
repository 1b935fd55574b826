"""What lies where others may read it, sealed: AES-256 in Galois/counter mode, under a key for each name.

A key is derived from the store's secret and the name, so that no two names share one; the name is authenticated with
the content, and what was sealed for one purpose does not open for another.
"""

import hashlib
import os
from collections.abc import Callable

NONCE_BYTES = 12
"""96 bits, drawn anew each time (NIST SP 800-38D section 8.2.2)."""
_FORM = b"\x01"


class Sealing:
    """Seals and opens. `secret` tells the store's secret as it is now."""

    def __init__(self, secret: Callable[[], bytes]) -> None:
        self._secret = secret

    def __repr__(self) -> str:
        return "<Sealing>"

    def seal(self, name: bytes, purpose: bytes, plain: bytes) -> bytes:
        """`plain`, so that only who knows the secret can read or change it."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # only who seals pays for it

        nonce = os.urandom(NONCE_BYTES)
        return b"".join([_FORM, nonce, AESGCM(self._key(name, purpose)).encrypt(nonce, plain, name)])

    def open(self, name: bytes, purpose: bytes, sealed: bytes) -> bytes | None:
        """What was sealed for this name and purpose; None if this is not that."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        start = len(_FORM) + NONCE_BYTES
        if sealed[:1] != _FORM or len(sealed) < start:
            return None
        try:
            return AESGCM(self._key(name, purpose)).decrypt(sealed[len(_FORM) : start], sealed[start:], name)
        except InvalidTag:
            return None

    def _key(self, name: bytes, purpose: bytes) -> bytes:
        digest = hashlib.blake2b(key=self._secret(), digest_size=32, person=b"sealing")
        digest.update(len(purpose).to_bytes(8, "big") + purpose + name)
        return digest.digest()
