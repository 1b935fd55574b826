"""An export or an import over the wire, line by line: neither is ever held as a whole."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import IO, Any

import aiohttp
import orjson

from cacheproxy.errors import ConfigurationError

SILENCE = 600.0
"""Seconds that a proxy may say nothing in the midst of an export."""
PIECE = 256 * 2**10
LINES = "application/x-ndjson"
LONGEST_ERROR = 2**20


class Refused(Exception):
    """The proxy answers something else than what was asked for: a status, and what it says."""

    def __init__(self, status: int, told: Any) -> None:
        super().__init__(status)
        self.status = status
        self.told = told


async def fetch(url: str, headers: dict[str, str], query: dict[str, str], line: Callable[[bytes], object]) -> None:
    """Export: `line` is told each line, its end included. Raises `Refused`, `ConfigurationError`, `ConnectionError`
    if it broke off."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=SILENCE)
    begun = False
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{url}/admin/export", params=query, headers=headers, allow_redirects=False) as answer,
        ):
            if answer.status != 200 or answer.content_type != "application/x-ndjson":
                raise Refused(answer.status, _document(await answer.content.read(LONGEST_ERROR)))
            begun, held = True, b""
            async for piece in answer.content.iter_any():
                *whole, held = (held + piece).split(b"\n")
                for one in whole:
                    line(one + b"\n")
            if held:
                line(held)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise _trouble(url, error, begun=begun) from None


async def send(
    url: str, headers: dict[str, str], query: dict[str, str], file: IO[bytes], sent: Callable[[int], object]
) -> Any:
    """Import what `file` has; what the proxy says. `sent` is told how many bytes went. Raises `Refused`,
    `ConfigurationError`, `ConnectionError` if it broke off."""
    begun = False

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal begun
        while piece := await asyncio.to_thread(file.read, PIECE):
            begun = True
            yield piece
            sent(len(piece))

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(
                f"{url}/admin/import", params=query, data=pieces(), headers={**headers, "Content-Type": LINES},
                allow_redirects=False, expect100=True,
            ) as answer,
        ):  # fmt: skip
            told = _document(await answer.read())
            if answer.status != 200 or not isinstance(told, dict) or "imported" not in told:
                raise Refused(answer.status, told)
            return told
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise _trouble(url, error, begun=begun) from None


def _trouble(url: str, error: Exception, *, begun: bool) -> Exception:
    if begun:
        return ConnectionError(f"{url} broke off")
    why = "no answer in time" if isinstance(error, TimeoutError) else "nobody answers there"
    return ConfigurationError(f"cannot reach {url}: {why}")


def _document(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
