"""What of a request a backend reads first, as it is forwarded: for the router, and for learning what diverges.

Worked out only when the request goes to a backend.
"""

from dataclasses import dataclass
from typing import Any

from cacheproxy.core import blocks, trail
from cacheproxy.core.affinity import Route
from cacheproxy.core.blocks import Block
from cacheproxy.core.model import Endpoint
from cacheproxy.core.prefix import Change


@dataclass(frozen=True, slots=True)
class Prefix:
    """A request's fields with the rules applied, what they changed, and in whose scope it is (16 bytes)."""

    endpoint: Endpoint
    fields: dict[str, Any]
    changes: tuple[Change, ...]
    owner: bytes
    model: str

    @property
    def head(self) -> list[Block]:
        """The tools and the leading system texts."""
        return blocks.head(self.endpoint, self.fields)

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of the rules that changed something."""
        return tuple(dict.fromkeys(change.rule for change in self.changes))

    @property
    def route(self) -> Route | None:
        """By what a replica is chosen that has this prefix."""
        return trail.route(self.endpoint, self.fields)
