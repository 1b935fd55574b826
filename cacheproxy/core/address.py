"""Where a backend is, read from its URL. Pure; a text says what is wrong and repeats no part that could be secret."""

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port to connect to, the path before ``/v1``, and the value of the ``Host`` field."""

    host: str
    port: int
    tls: bool
    path: bytes
    host_field: bytes


def read(url: str) -> Address | str:
    """The address in `url`, with or without ``http://`` and a trailing ``/v1``."""
    expected = "must be a URL such as http://127.0.0.1:8000"
    try:
        parts = urlsplit(url if "://" in url else "http://" + url)
        port = parts.port
        host_field = parts.netloc.encode("ascii" if parts.netloc.isascii() else "idna")
    except (ValueError, UnicodeError):
        return expected
    if parts.username is not None or parts.password is not None:
        return "must not carry a user or password; clients send their own"
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        return expected
    if "://" not in url and (url.startswith(("/", ":")) or ":/" in url):
        return expected
    tls = parts.scheme == "https"
    path = parts.path.rstrip("/").removesuffix("/v1").encode("ascii", "replace")
    return Address(parts.hostname, port or (443 if tls else 80), tls, path, host_field)
