"""What went wrong with a Redis, in fixed words: each exception of a command becomes a `Trouble` with a kind.

An exception's own text is never passed on: redis-py writes the command with its keys and values into some of them."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Iterator
from enum import StrEnum

from redis import exceptions as redis
from redis.asyncio.sentinel import MasterNotFoundError, SlaveNotFoundError

from cacheproxy.errors import Trouble


class Kind(StrEnum):
    TIMEOUT = "timeout"
    REFUSED = "refused"
    RESET = "reset"
    DNS = "dns"
    TLS = "tls"
    PROTOCOL = "protocol"
    READONLY = "readonly"
    OOM = "oom"
    LOADING = "loading"
    MOVED = "moved"
    NOAUTH = "noauth"
    NOPERM = "noperm"
    MASTERDOWN = "masterdown"
    CLUSTERDOWN = "clusterdown"
    BUSY = "busy"
    POOL = "pool"
    OTHER = "other"


TEXTS = {
    Kind.TIMEOUT: "no answer in time",
    Kind.REFUSED: "nobody takes the connection",
    Kind.RESET: "the connection broke off",
    Kind.DNS: "the host's name cannot be resolved",
    Kind.TLS: "TLS failed: the certificate or the version is not accepted",
    Kind.PROTOCOL: "what answers does not speak Redis's protocol",
    Kind.READONLY: "the server is a replica and takes no writes",
    Kind.OOM: "the server is out of memory and takes no writes",
    Kind.LOADING: "the server is still loading its data",
    Kind.MOVED: "the key belongs to another node of a cluster",
    Kind.NOAUTH: "the server does not accept the user or password",
    Kind.NOPERM: "the user may not run this command or use this key",
    Kind.MASTERDOWN: "there is no primary now",
    Kind.CLUSTERDOWN: "the cluster is down or does not serve every slot",
    Kind.BUSY: "the server is busy with a script",
    Kind.POOL: "no connection became free in time",
    Kind.OTHER: "the command failed",
}

# The first that an exception is an instance of counts.
_TYPES: tuple[tuple[type[BaseException], Kind], ...] = (
    (redis.MaxConnectionsError, Kind.POOL),
    (redis.TimeoutError, Kind.TIMEOUT),
    (redis.ReadOnlyError, Kind.READONLY),
    (redis.OutOfMemoryError, Kind.OOM),
    (redis.BusyLoadingError, Kind.LOADING),
    (redis.AskError, Kind.MOVED),
    (redis.TryAgainError, Kind.MOVED),
    (redis.MasterDownError, Kind.MASTERDOWN),
    (MasterNotFoundError, Kind.MASTERDOWN),
    (SlaveNotFoundError, Kind.MASTERDOWN),
    (redis.ClusterError, Kind.CLUSTERDOWN),
    (redis.SlotNotCoveredError, Kind.CLUSTERDOWN),
    (redis.NoPermissionError, Kind.NOPERM),
    (redis.AuthenticationError, Kind.NOAUTH),
    (redis.AuthorizationError, Kind.NOAUTH),
    (redis.ExternalAuthProviderError, Kind.NOAUTH),
    (redis.AuthenticationWrongNumberOfArgsError, Kind.NOAUTH),
    (redis.InvalidResponse, Kind.PROTOCOL),
    (ssl.SSLError, Kind.TLS),
    (socket.gaierror, Kind.DNS),
    (TimeoutError, Kind.TIMEOUT),
    (ConnectionRefusedError, Kind.REFUSED),
    (FileNotFoundError, Kind.REFUSED),
    (PermissionError, Kind.REFUSED),
    (ConnectionError, Kind.RESET),
    (asyncio.IncompleteReadError, Kind.RESET),
    # What an answer of another shape than expected ends in.
    (LookupError, Kind.PROTOCOL),
    (ValueError, Kind.PROTOCOL),
    (TypeError, Kind.PROTOCOL),
    (AttributeError, Kind.PROTOCOL),
    (AssertionError, Kind.PROTOCOL),
)
# The first word of an error that redis-py has no class for.
_WORDS = {
    "BUSY": Kind.BUSY,
    "UNKILLABLE": Kind.BUSY,
    "NOAUTH": Kind.NOAUTH,
    "WRONGPASS": Kind.NOAUTH,
    "NOPROTO": Kind.PROTOCOL,
    "NOMASTERLINK": Kind.MASTERDOWN,
    "NOGOODSLAVE": Kind.MASTERDOWN,
}
_UNREACHABLE = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN, errno.EADDRNOTAVAIL}


def trouble(error: Exception) -> Trouble:
    """What `error` means: a `Trouble` with one of the kinds and its fixed text. A `Trouble` is itself."""
    last = error
    for last in _causes(error):
        if isinstance(last, Trouble):
            return last
        if str(last).startswith("This instance has cluster support disabled"):
            return Trouble("the server is no cluster: write redis:// in place of redis+cluster://", Kind.CLUSTERDOWN)
        kind = _of_type(last) or _of_text(last)
        if kind is not None:
            return Trouble(TEXTS[kind], kind)
    if isinstance(last, redis.ConnectionError):  # "Connection closed by server."
        return Trouble(TEXTS[Kind.RESET], Kind.RESET)
    if isinstance(last, redis.RedisClusterException):
        return Trouble(TEXTS[Kind.CLUSTERDOWN], Kind.CLUSTERDOWN)
    return Trouble(f"{TEXTS[Kind.OTHER]} ({_name(last)})")


def _name(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return " ".join([type(error).__name__, *([errno.errorcode.get(number, "")] if number else [])])


def _causes(error: Exception) -> Iterator[Exception]:
    """`error`, and what led to it, as far as redis-py wraps what the system raised."""
    seen: BaseException | None = error
    for _ in range(6):
        if not isinstance(seen, Exception):
            return
        yield seen
        if not isinstance(seen, redis.ConnectionError | redis.RedisClusterException):
            return
        seen = seen.__cause__ or seen.__context__


def _of_type(error: Exception) -> Kind | None:
    for known, kind in _TYPES:
        if isinstance(error, known):
            return kind
    if isinstance(error, OSError) and (error.errno is None or error.errno in _UNREACHABLE):
        return Kind.REFUSED  # without a number: of several addresses, each for its own reason
    return None


def _of_text(error: Exception) -> Kind | None:
    """By the fixed first words of what the server itself said."""
    if not isinstance(error, redis.RedisError):
        return None
    text = str(error)
    if text.startswith("max number of clients"):
        return Kind.REFUSED
    if text.startswith("ACL failure in script"):
        return Kind.NOPERM
    return _WORDS.get(text.partition(" ")[0])
