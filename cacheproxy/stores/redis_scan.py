"""All entries in Redis, one after the other: for removals, lists and counting, never on the way of a request."""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from cacheproxy.core import codec
from cacheproxy.core.key import entry_id
from cacheproxy.core.model import Census, Entry
from cacheproxy.ports import BadCursor
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

    async def entries(self, ids: Collection[str], generation: bytes) -> AsyncIterator[list[Entry]]:
        """The entries there now, without their contents, some at a time; of `ids` only, if there are any. What is of
        another generation counts as put before any removal. They may be gone or replaced meanwhile. Raises
        `Trouble`."""
        if ids:
            yield await self._described(self.names_of(ids), generation)
            return
        async for names in self._names():
            yield await self._described(names, generation)

    def names_of(self, ids: Collection[str]) -> list[str]:
        """Where the entries of `ids` lie."""
        return [self._keys.entry_of_id(name) for name in ids if _is_id(name)]

    async def count(self) -> Census:
        """How many there are, and the bytes of their values. Raises `Trouble`."""
        entries = size = 0
        async for names in self._names():
            lengths = await self._replies([("STRLEN", name) for name in names], int)
            entries += sum(length > 0 for length in lengths)
            size += sum(lengths)
        return Census(entries, size)

    async def page(self, cursor: str, most: int) -> tuple[list[str], str]:
        """Names from `cursor` on, about `most`, and where to go on; empty at the end. Raises `BadCursor`, `Trouble`."""
        node, _, number = cursor.rpartition("/")
        if cursor and not (number.isascii() and number.isdecimal() and int(number) < 2**64):
            raise BadCursor
        nodes = self._nodes()
        if node not in nodes:  # the beginning, or it is gone
            node, number = next((other for other in nodes if other > node), ""), "0"
        if node not in nodes:
            return [], ""
        goes_on, names = await self._scanned(nodes[node], int(number or 0), most)
        if goes_on:
            return names, f"{node}/{goes_on}"
        following = next((other for other in nodes if other > node), None)
        return names, "" if following is None else f"{following}/0"

    async def listed(self, names: Sequence[str], generation: bytes) -> list[tuple[Entry, int]]:
        """The entries of this generation under `names`, without their contents, and the bytes of their values."""
        sizes = await self._replies([("STRLEN", name) for name in names], int)
        starts = await self._starts(names)
        found = [
            (await self._fact(name, start), size) if start[:GENERATION_BYTES] == generation else (None, 0)
            for name, start, size in zip(names, starts, sizes, strict=True)
        ]
        return [(entry, size) for entry, size in found if entry is not None]

    async def _names(self) -> AsyncIterator[list[str]]:
        for node in self._nodes().values():
            cursor = 0
            while True:
                cursor, names = await self._scanned(node, cursor, AT_ONCE)
                if names:
                    yield names
                if not cursor:
                    break

    async def _scanned(self, node: dict[str, Any], cursor: int, most: int) -> tuple[int, list[str]]:
        reply = await self._calls.run("SCAN", cursor, "MATCH", self._keys.entries, "COUNT", most, **node)
        return await self._calls.understood(partial(_page, reply))

    def _nodes(self) -> dict[str, dict[str, Any]]:
        """Where to scan, in the order of names: options of a call."""
        if self._keys.shards == 1:
            return {"": {}}
        redis: Any = self._calls.link.redis
        return {node.name: {"target_nodes": node} for node in sorted(redis.get_primaries(), key=lambda node: node.name)}

    async def _described(self, names: list[str], generation: bytes) -> list[Entry]:
        starts = await self._starts(names)
        found = [(await self._fact(name, start), start) for name, start in zip(names, starts, strict=True)]
        return [
            entry if start[:GENERATION_BYTES] == generation else replace(entry, epoch=0)
            for entry, start in found
            if entry is not None
        ]

    async def _starts(self, names: Sequence[str]) -> list[bytes]:
        return await self._replies([("GETRANGE", name, 0, GENERATION_BYTES + FACTS - 1) for name in names], bytes)

    async def _fact(self, name: str, start: bytes) -> Entry | None:
        """The entry under `name`, whose value begins with `start`, without its contents."""
        entry = _entry(start, name)
        return entry if entry is not None or not start else _entry(await self._calls.value(name), name)

    async def _replies(self, commands: list[tuple[Any, ...]], kind: type[T]) -> list[T]:
        """The replies to `commands`, all of this kind."""
        if not commands:
            return []
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
