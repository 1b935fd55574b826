"""All entries in Redis, one after the other: for removals and counting, never on the way of a request."""

from collections.abc import AsyncIterator, Collection
from functools import partial
from typing import Any, TypeVar

from cacheproxy.core import codec
from cacheproxy.core.key import entry_id
from cacheproxy.core.model import Census, Entry
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_keys import GENERATION_BYTES, Keys

T = TypeVar("T")

AT_ONCE = 200
"""Keys that a scan asks for in one call."""
FACTS = 2048
"""Bytes of a value that usually hold all facts of its entry."""


class Scan:
    """Looks at what lies under `keys`."""

    def __init__(self, calls: Calls, keys: Keys) -> None:
        self._calls = calls
        self._keys = keys

    async def entries(self, ids: Collection[str] = ()) -> AsyncIterator[list[Entry]]:
        """The entries there now, without their contents, some at a time; of `ids` only, if there are any. They may be
        gone or replaced meanwhile. Raises `Trouble`."""
        if ids:
            yield await self._described([self._keys.entry_of_id(name) for name in ids if _is_id(name)])
            return
        async for names in self._names():
            yield await self._described(names)

    async def count(self) -> Census:
        """How many there are, and the bytes of their values. Raises `Trouble`."""
        entries = size = 0
        async for names in self._names():
            lengths = await self._replies([("STRLEN", name) for name in names], int)
            entries += sum(length > 0 for length in lengths)
            size += sum(lengths)
        return Census(entries, size)

    async def _names(self) -> AsyncIterator[list[str]]:
        for node in self._nodes():
            cursor: Any = 0
            while True:
                reply = await self._calls.run("SCAN", cursor, "MATCH", self._keys.entries, "COUNT", AT_ONCE, **node)
                cursor, names = await self._calls.understood(partial(_page, reply))
                if names:
                    yield names
                if not cursor:
                    break

    def _nodes(self) -> list[dict[str, Any]]:
        """Where to scan: options of a call."""
        if self._keys.shards == 1:
            return [{}]
        redis: Any = self._calls.link.redis
        return [{"target_nodes": node} for node in redis.get_primaries()]

    async def _described(self, names: list[str]) -> list[Entry]:
        if not names:
            return []
        starts = await self._replies([("GETRANGE", name, 0, GENERATION_BYTES + FACTS - 1) for name in names], bytes)
        found = []
        for name, start in zip(names, starts, strict=True):
            entry = _entry(start, name)
            if entry is None and start:
                entry = _entry(await self._calls.value(name), name)
            if entry is not None:
                found.append(entry)
        return found

    async def _replies(self, commands: list[tuple[Any, ...]], kind: type[T]) -> list[T]:
        """The replies to `commands`, all of this kind."""
        replies = await self._calls.together(commands)
        if not all(isinstance(reply, kind) for reply in replies):
            raise await self._calls.distrust("not the reply to what was asked")
        return replies


def _page(reply: Any) -> tuple[int, list[str]]:
    """What a scan gave: where to go on (0: nowhere), and names."""
    cursor, names = reply
    return int(cursor), [name.decode() for name in names]


def _entry(start: bytes | None, name: str) -> Entry | None:
    stored = (start or b"")[GENERATION_BYTES:]
    key = codec.key_in(stored)
    return codec.described(stored, key) if key is not None and name.endswith(entry_id(key)) else None


def _is_id(name: str) -> bool:
    return len(name) == 32 and all(digit in "0123456789abcdef" for digit in name)
