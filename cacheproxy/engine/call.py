"""A request that has arrived, as the engine sees it."""

from collections.abc import AsyncIterator
from typing import Protocol

from cacheproxy.core.model import Fields
from cacheproxy.engine.profile import Stages


class Call(Protocol):
    """The head, and the body in one of two ways."""

    method: str
    target: bytes
    fields: Fields
    stages: Stages

    async def whole(self) -> bytes:
        """The body, bounded by the limit on bodies. Raises `RequestTooLarge`."""

    async def pieces(self, most: int = 0) -> bytes | AsyncIterator[bytes] | None:
        """The body as it arrives, without bound; None if there is none. One whose length is stated and small, or at
        most `most` bytes, as a whole."""
