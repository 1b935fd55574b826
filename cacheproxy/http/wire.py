"""What the kernel knows of a client's connection, and how one is ended by a reset.

The facts are Linux's; on other systems nothing is known here, and callers must do without.
"""

import asyncio
import socket
import struct
import sys

_PROBE_AFTER, _PROBE_EVERY, _PROBES = 15, 5, 3
"""Seconds of silence before the first probe, between two, and how many may go unanswered."""
_STATE_CLOSED = 7
_BYTES_ACKED = 120
"""Where `struct tcp_info` has the count; its first byte is the state."""


def taken(transport: asyncio.Transport) -> int:
    """How many bytes of all that was written the client's system has taken; 0 where that is not known."""
    info = _info(transport)
    return int(struct.unpack_from("=Q", info, _BYTES_ACKED)[0]) if len(info) >= _BYTES_ACKED + 8 else 0


def is_gone(transport: asyncio.Transport) -> bool:
    """Whether the kernel has given the connection up: a reset came, or probes had no answer."""
    return _info(transport)[:1] == bytes([_STATE_CLOSED])


def probe(transport: asyncio.Transport) -> None:
    """Have the kernel ask from time to time whether the client's end still exists. A Linux client that has closed for
    good denies it after its `tcp_fin_timeout` (a minute)."""
    sock = transport.get_extra_info("socket")
    if sys.platform == "linux" and sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_AFTER)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_EVERY)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)


def reset(transport: asyncio.Transport) -> None:
    """End the connection now, what is not yet written included, so that no client takes that for a clean end."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _info(transport: asyncio.Transport) -> bytes:
    sock = transport.get_extra_info("socket")
    if sys.platform != "linux" or sock is None:
        return b""
    try:
        return bytes(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256))
    except OSError:
        return b""
