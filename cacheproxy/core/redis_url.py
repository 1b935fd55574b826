"""Where a Redis is, read from its URL, in every topology. Pure; a text says what is wrong and what to write
instead, and repeats no part of the URL, since any part may be secret. Nothing unknown is passed over."""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import quote, unquote


class Topology(StrEnum):
    SINGLE = "single"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


_SCHEMES = {
    "redis": (Topology.SINGLE, False, 6379),
    "rediss": (Topology.SINGLE, True, 6379),
    "unix": (Topology.SINGLE, False, 0),
    "redis+sentinel": (Topology.SENTINEL, False, 26379),
    "rediss+sentinel": (Topology.SENTINEL, True, 26379),
    "redis+cluster": (Topology.CLUSTER, False, 6379),
    "rediss+cluster": (Topology.CLUSTER, True, 6379),
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?)(?::([0-9]{1,5}))?")
_DATABASE = re.compile(r"0|[1-9][0-9]{0,5}")
_SERVICE = re.compile(r"[A-Za-z0-9._-]+")
_ESCAPES = "in a user or password write @ as %40, / as %2F, ? as %3F, # as %23, % as %25 and a comma as %2C"
MASK = "***"


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """`hosts`: (host, port) of the server, the Sentinels or nodes of the cluster, IPv6 without brackets; empty with
    `path`, that of a Unix socket. `service`: what the Sentinels call the primary."""

    topology: Topology
    hosts: tuple[tuple[str, int], ...]
    path: str | None = None
    service: str | None = None
    database: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False

    @property
    def shown(self) -> str:
        """The URL, every default written out, with the password masked."""
        user = quote(self.username or "", safe="") + (f":{MASK}" if self.password is not None else "")
        at = f"{user}@" if user else ""
        if self.path is not None:
            return f"unix://{at}{quote(self.path)}" + (f"?db={self.database}" if self.database else "")
        scheme = "rediss" if self.tls else "redis"
        if self.topology is not Topology.SINGLE:
            scheme += f"+{self.topology}"
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        service = f"/{self.service}" if self.service is not None else ""
        database = "" if self.topology is Topology.CLUSTER else f"/{self.database}"
        return f"{scheme}://{at}{hosts}{service}{database}"

    def __repr__(self) -> str:
        return f"<Target {self.shown}>"


class _Wrong(Exception):
    """The text that is the answer."""


def read(url: str) -> Target | str:
    """The target that `url` names, or what is wrong with it:

    ``redis://[[user]:password@]host[:6379][/database]``, ``unix://[[user]:password@]/path[?db=1]``,
    ``redis+sentinel://…@host[:26379],host/service[/database]``, ``redis+cluster://…@host[:6379],host``; with TLS
    ``rediss`` in place of ``redis``. A text of it that is not ASCII, or has a meaning in a URL, is percent-encoded."""
    try:
        return _read(url)
    except _Wrong as wrong:
        return str(wrong)


def _read(url: str) -> Target:
    if any(character.isspace() or not character.isprintable() for character in url):
        raise _Wrong("must have no spaces, line ends or control characters")
    scheme = _SCHEME.match(url)
    if scheme is None or scheme[1].lower() not in _SCHEMES:
        known = ", ".join(f"{name}://" for name in _SCHEMES)
        raise _Wrong(f"must begin with one of {known}, such as redis://127.0.0.1:6379/0")
    name = scheme[1].lower()
    topology, tls, port = _SCHEMES[name]
    rest, hash_sign, _ = url[scheme.end() :].partition("#")
    if hash_sign:
        raise _Wrong(f"must have no part after #; {_ESCAPES}")
    rest, mark, query = rest.partition("?")
    if mark and name != "unix":
        raise _Wrong(
            f"must have no fields after ?: the database is written /1, everything else is a setting; {_ESCAPES}"
        )
    place, slash, path = rest.partition("/")
    if "@" in path and "@" not in place and name != "unix":
        raise _Wrong(f"has an @ after a /; {_ESCAPES}")
    user, at, hosts = place.rpartition("@")
    username, password = _credentials(user) if at else (None, None)
    if name == "unix":
        database = _field(query) if mark else 0
        return Target(topology, (), _socket(hosts, slash + path), None, database, username, password, tls)
    found = _hosts(hosts, port, several=topology is not Topology.SINGLE)
    service, database = _PATHS[topology](path)
    return Target(topology, found, None, service, database, username, password, tls)


def _credentials(text: str) -> tuple[str | None, str | None]:
    if "@" in text or "," in text:
        raise _Wrong(f"has an @ or a comma in the user or password; {_ESCAPES}")
    user, colon, password = text.partition(":")
    if colon and not password:
        raise _Wrong("has an empty password; write user@host if there is none, or if it is read from a file")
    if not user and not colon:
        raise _Wrong("has nothing before the @; write user:password@host, :password@host or host")
    return _plain(user) or None, _plain(password) if colon else None


def _plain(text: str) -> str:
    """`text` without its percent-encoding."""
    if re.search("%(?![0-9A-Fa-f]{2})", text):
        raise _Wrong("has a % that begins no escape of two hexadecimal digits; write % as %25")
    try:
        plain = unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise _Wrong("has percent-encoded bytes that are not UTF-8") from None
    if "\0" in plain:
        raise _Wrong("must have no %00")
    return plain


def _hosts(text: str, default: int, *, several: bool) -> tuple[tuple[str, int], ...]:
    if "," in text and not several:
        raise _Wrong("names several hosts; write redis+sentinel://…/service or redis+cluster://… for what they are")
    return tuple(dict.fromkeys(_host(one, default) for one in text.split(",")))


def _host(text: str, default: int) -> tuple[str, int]:
    if not text:
        raise _Wrong("lacks a host, such as redis://127.0.0.1:6379/0")
    found = _HOST.fullmatch(text)
    if found is None:
        hint = "an IPv6 address is written in brackets, a port is a number"
        raise _Wrong(f"has a host that cannot be read: {hint}; {_ESCAPES}")
    host, port = found[1], int(found[3] or default)
    if not 0 < port <= 65_535:
        raise _Wrong("has a port that is not between 1 and 65535")
    if not host.startswith("["):
        return host.lower(), port
    try:
        return str(ipaddress.IPv6Address(host[1:-1])), port
    except ValueError:
        raise _Wrong("has an IPv6 address that cannot be read") from None


def _socket(host: str, path: str) -> str:
    plain = _plain(path)
    if host or not plain.strip("/") or plain.endswith("/"):
        raise _Wrong("must name a socket by its whole path, with three slashes: unix:///run/redis/redis.sock")
    return plain


def _field(query: str) -> int:
    name, _, value = query.partition("=")
    if name != "db" or not _DATABASE.fullmatch(value):
        raise _Wrong("must have nothing after ? but the number of a database: unix:///run/redis/redis.sock?db=1")
    return int(value)


def _database(text: str) -> int:
    if not text:
        return 0
    if not _DATABASE.fullmatch(text):
        raise _Wrong(f"must end with the number of a database, such as /0; {_ESCAPES}")
    return int(text)


def _single(path: str) -> tuple[str | None, int]:
    return None, _database(path)


def _sentinel(path: str) -> tuple[str | None, int]:
    service, _, database = path.partition("/")
    if not _SERVICE.fullmatch(service):
        shape = "redis+sentinel://host1:26379,host2:26379/mymaster"
        raise _Wrong(f"must name the primary as the Sentinels do (letters, digits, '.', '_', '-'): {shape}")
    return service, _database(database)


def _cluster(path: str) -> tuple[str | None, int]:
    if path not in ("", "0"):
        raise _Wrong("must have nothing after the hosts: a cluster has no numbered databases")
    return None, 0


_PATHS: dict[Topology, Callable[[str], tuple[str | None, int]]] = {
    Topology.SINGLE: _single,
    Topology.SENTINEL: _sentinel,
    Topology.CLUSTER: _cluster,
}
