"""Who may use the admin API: tokens compared in constant time, files of them read anew when they change, and peers that
keep failing looked at less and less often."""

import hashlib
import hmac
import ipaddress
import logging
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol

from cachetools import LRUCache

from cacheproxy.errors import ConfigurationError

log = logging.getLogger("cacheproxy.http")

LEAST = 8
"""Characters of a token."""
AT_ONCE = 2
"""Tokens in a file: the old and the new, while they are exchanged."""
MOST_BYTES = 4096

BURST = 100
"""Wrong tokens that a peer may send one after the other (NIST SP 800-63B, section 5.2.2)."""
EVERY = 1.0
"""Seconds in which it may send one more."""
PEERS = 4096
"""Peers whose failures are remembered."""


class Access(Enum):
    """What a token is good for."""

    FULL = "full"
    READ = "read"


class Bearer(NamedTuple):
    """Who has come. `fingerprint`: some digits of the token's SHA-256 digest."""

    access: Access
    fingerprint: str


class Source(Protocol):
    """Where tokens come from."""

    def digests(self) -> Sequence[bytes]:
        """The SHA-256 digests of those that are valid now."""


class Given:
    """A token of the configuration."""

    def __init__(self, token: str) -> None:
        self._digests = (_digest(token.encode()),)

    def digests(self) -> Sequence[bytes]:
        return self._digests


class File:
    """Tokens in a file, a line each. As long as it cannot be read, or has anything else in it, none is valid."""

    def __init__(self, path: Path, name: str) -> None:
        """`name`: of the setting. Raises `ConfigurationError` if the file is of no use now."""
        self._path = path
        self._stamp: object = None
        self._digests: tuple[bytes, ...] = ()
        self._read()
        if not self._digests:
            raise ConfigurationError(
                f"`{name}`: {path} must be a readable file with one token, or {AT_ONCE}, of at least {LEAST} "
                "characters, a line each"
            )

    def digests(self) -> Sequence[bytes]:
        self._read()
        return self._digests

    def _read(self) -> None:
        """Read it if it is another than before."""
        try:
            status = self._path.stat()
            stamp: object = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        except OSError as error:
            stamp = error.errno
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            with self._path.open("rb") as file:
                tokens = file.read(MOST_BYTES + 1).split(b"\n")
        except OSError:
            tokens = []
        tokens = [token.strip() for token in tokens if token.strip()]
        good = 1 <= len(tokens) <= AT_ONCE and all(LEAST <= len(token) <= MOST_BYTES // 2 for token in tokens)
        self._digests = tuple(map(_digest, tokens)) if good else ()
        if not good:
            log.warning("no admin token of %s is valid: it cannot be read, or has none or too many", self._path)


class Tokens:
    """All that are valid. Where there are none, nobody needs one."""

    def __init__(self, full: Sequence[Source] = (), read: Sequence[Source] = ()) -> None:
        self._sources = [(Access.FULL, source) for source in full] + [(Access.READ, source) for source in read]

    @property
    def guarded(self) -> bool:
        """Whether a token is needed."""
        return bool(self._sources)

    def bearer(self, token: bytes) -> Bearer | None:
        """Who comes with this token. Takes as long whichever it is."""
        asked, found = _digest(token), None
        for access, source in self._sources:
            for digest in source.digests():
                if hmac.compare_digest(digest, asked) and found is None:
                    found = Bearer(access, digest.hex()[:12])
        return found


class Failures:
    """How often peers failed: each may `BURST` times, and once more every `EVERY` seconds (GCRA, the generic cell rate
    algorithm). Remembers so many peers, those of one IPv6 network as one."""

    def __init__(self) -> None:
        self._due: LRUCache[str, float] = LRUCache(PEERS)

    def wait(self, peer: str | None, now: float) -> float:
        """Seconds until this peer is looked at again; 0 for now. `now`: of a monotonic clock."""
        return max(0.0, self._due.get(_network(peer), now) - now - (BURST - 1) * EVERY)

    def note(self, peer: str | None, now: float) -> None:
        """It failed."""
        name = _network(peer)
        self._due[name] = max(self._due.get(name, now), now) + EVERY


def _network(peer: str | None) -> str:
    try:
        address = ipaddress.ip_address((peer or "").partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
