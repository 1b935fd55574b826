"""The vector index in this process: exact, bounded in rows, the oldest written first out. Nothing of it is on a disk;
`rows` and `fill` are for who keeps it there."""

import asyncio
import heapq
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cacheproxy.core.model import Near, Row
from cacheproxy.errors import Trouble
from cacheproxy.meaning.partition import Partition
from cacheproxy.meaning.vectors import Floats, check_partition, checked, unit

AT_ONCE = 50
"""Rows that are removed in one turn of the loop."""

TURN = 0.001
"""Seconds for which rows are filled in in one turn of the loop."""

_SLACK = 1024


class Local:
    """A `VectorIndex` of vectors with `dim` numbers, bounded to `most` rows."""

    def __init__(self, dim: int, most: int) -> None:
        self._dim = dim
        self._most = most
        self._partitions: dict[bytes, Partition] = {}
        self._places: OrderedDict[bytes, tuple[bytes, int]] = OrderedDict()  # by key, oldest written first
        self._expiries: list[tuple[float, bytes]] = []

    def __repr__(self) -> str:
        return f"<Local {len(self)}/{self._most} rows {len(self._partitions)} partitions>"

    def __len__(self) -> int:
        return len(self._places)

    @property
    def full(self) -> bool:
        """Whether another row would have to take the place of the oldest."""
        return len(self) >= self._most

    async def add(self, row: Row) -> None:
        self._add(row, checked(row, self._dim))

    async def search(
        self, partition: bytes, vector: NDArray[np.floating[Any]], text: str, limit: int, now: float
    ) -> list[Near]:
        check_partition(partition)
        direction = unit(vector, self._dim)
        within = self._partitions.get(partition)
        return within.search(direction, text, limit, now) if within is not None and limit > 0 else []

    async def remove(self, keys: Iterable[bytes]) -> int:
        gone = 0
        for number, key in enumerate(list(keys), 1):
            gone += self._drop(key)
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
        return gone

    async def sweep(self, now: float) -> int:
        gone = 0
        while self._expiries and self._expiries[0][0] <= now:
            _, key = heapq.heappop(self._expiries)
            if self._expiry(key) <= now:  # it may be a younger row of the same key
                gone += self._drop(key)
            if gone and gone % AT_ONCE == 0:
                await asyncio.sleep(0)
        return gone

    async def known(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        return {row.key: row for key in keys if (row := self._row(key)) is not None}

    async def close(self) -> None:
        self._partitions.clear()
        self._places.clear()
        self._expiries.clear()

    def rows(self) -> Iterator[Row]:
        """Every row that is there when it is reached, youngest first."""
        for key in list(reversed(self._places)):
            if (row := self._row(key)) is not None:
                yield row

    async def fill(self, rows: Iterable[Row]) -> int:
        """Add rows that were written earlier than all that are here, youngest first, until it is full or there are no
        more; how many. A row that cannot be kept is left out. Leaves the loop free in between; searches find what is
        there already."""
        filled, began = 0, time.perf_counter()
        for row in rows:
            if self.full:
                break
            if row.key not in self._places:
                with suppress(Trouble):
                    self._add(row, checked(row, self._dim))
                    self._places.move_to_end(row.key, last=False)
                    filled += 1
            if time.perf_counter() - began > TURN:
                await asyncio.sleep(0)
                began = time.perf_counter()
        return filled

    def _add(self, row: Row, vector: Floats) -> None:
        self._drop(row.key)
        within = self._partitions.get(row.partition)
        if within is None:
            within = self._partitions[row.partition] = Partition(self._dim)
        place = within.add(row.key, vector, row.text, row.expires_at)
        self._places[row.key] = row.partition, place
        while len(self) > self._most:
            self._drop(next(iter(self._places)))
        heapq.heappush(self._expiries, (row.expires_at, row.key))
        if len(self._expiries) > 2 * len(self) + _SLACK:
            self._expiries = [(self._expiry(key), key) for key in self._places]
            heapq.heapify(self._expiries)

    def _drop(self, key: bytes) -> bool:
        found = self._places.pop(key, None)
        if found is None:
            return False
        partition, place = found
        within = self._partitions[partition]
        for other, moved in within.remove(place).items():
            self._places[other] = partition, moved
        if not len(within):
            del self._partitions[partition]
        return True

    def _row(self, key: bytes) -> Row | None:
        found = self._places.get(key)
        if found is None:
            return None
        partition, place = found
        vector, text, expires_at = self._partitions[partition].row(place)
        return Row(key, partition, vector, text, expires_at)

    def _expiry(self, key: bytes) -> float:
        found = self._places.get(key)
        return self._partitions[found[0]].row(found[1])[2] if found is not None else float("inf")
