"""Work on bytes that may take long: beside the event loop, so that other callers go on meanwhile."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

AT_ONCE = 128 * 2**10
"""Bytes up to which the work is quicker done than handed to a thread."""

T = TypeVar("T")


async def aside(size: int, work: Callable[[], T]) -> T:
    """What `work` on `size` bytes gives. If the caller is cancelled meanwhile, what it gives is dropped."""
    return work() if size <= AT_ONCE else await asyncio.to_thread(work)
