"""Which partitions are crowds: so large, and so great a part of the index, that a server finds their nearest rows
sooner when it walks its graph and drops what is of other partitions than when it looks at each row, as it does by
itself.

Only partitions whose searches took long are counted, and that not often.
"""

from collections import OrderedDict

SLOW = 0.004
"""Seconds of a search after which its partition is counted."""

LEAST = 5_000
SHARE = 8
"""A crowd has so many rows at least, and at least one in so many of the index."""

LASTING = 300.0
"""Seconds that a count is believed."""

MOST = 4_096
"""Partitions that are remembered."""


class Crowds:
    """Rows of partitions, as far as it matters. Times are of a clock that never goes back."""

    def __init__(self) -> None:
        self._rows: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def took(self, partition: str, seconds: float) -> None:
        """A search took so long."""
        if partition not in self._rows and seconds >= SLOW:
            self._keep(partition, 0, -LASTING)

    def due(self, partition: str, now: float) -> bool:
        """Whether it is to be counted."""
        return partition in self._rows and now - self._rows[partition][1] >= LASTING

    def counted(self, partition: str, rows: int, now: float) -> None:
        """It has so many rows."""
        self._keep(partition, rows, now)

    def crowd(self, partition: str, total: int) -> bool:
        """Whether it is one, in an index of `total` rows; not if that is less than its own, and so not known yet."""
        rows, _ = self._rows.get(partition, (0, 0.0))
        return rows >= LEAST and rows <= total <= rows * SHARE

    def _keep(self, partition: str, rows: int, at: float) -> None:
        self._rows[partition] = rows, at
        self._rows.move_to_end(partition)
        if len(self._rows) > MOST:
            self._rows.popitem(last=False)
