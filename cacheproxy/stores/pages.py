"""Lists of entries by key: the cursor of a page is the last key that it has looked at, in hexadecimal digits."""

from collections.abc import Iterable

from cacheproxy.core.key import KEY_BYTES
from cacheproxy.ports import BadCursor, Listed, Page


def place(cursor: str) -> bytes:
    """The key after which a list goes on; empty at its beginning. Raises `BadCursor`."""
    if not cursor:
        return b""
    if len(cursor) != 2 * KEY_BYTES or not all(digit in "0123456789abcdef" for digit in cursor):
        raise BadCursor
    return bytes.fromhex(cursor)


def page(rows: Iterable[Listed], end: bytes | None, most: int) -> Page:
    """The first `most` of `rows`, which are complete up to `end` (None: to the end of the list). Of two with one key
    the last counts."""
    by_key = {row.entry.key: row for row in rows if end is None or row.entry.key <= end}
    keys = sorted(by_key)
    if len(keys) > most:
        end, keys = keys[most - 1], keys[:most]
    return Page([by_key[key] for key in keys], end.hex() if end is not None else "")
