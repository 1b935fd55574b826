"""A request's standing before the gate to the backend: how urgent it is, whose it is, and what it holds while it waits.
Written by who sends it, read by who keeps the gate; `urge` is the one change that others may make.
"""

from collections.abc import Awaitable, Callable

from cacheproxy.core.rates import NONE, Booking, Limits


class Standing:
    """`priority`: 0 is the most urgent, 2 the least; `tenant`: the fingerprint of the credential; `model`: as asked,
    empty if unknown; `size`: bytes that it holds; `name`: by what it is known when it is asked again, empty for
    nothing; `patience`: seconds it waits at most, None for as long as its class does, 0 for not at all; `limits`: what
    its caller may use in a minute.

    `recheck` is called when it has waited and its turn has come: what it raises ends it in place of its being sent.
    """

    __slots__ = (
        "_on_urge", "_where", "booking", "limits", "model", "name", "patience", "priority", "recheck", "since", "size",
        "tenant", "waited",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913 - one request, every fact about it
        self, priority: int, tenant: bytes, *, model: str = "", size: int = 0, name: bytes = b"",
        patience: float | None = None, recheck: Callable[[], Awaitable[None]] | None = None,
        limits: Limits = NONE,
    ) -> None:  # fmt: skip
        self.priority = priority
        self.tenant = tenant
        self.model = model
        self.size = size
        self.name = name
        self.patience = patience
        self.recheck = recheck
        self.limits = limits
        self.booking: Booking | None = None
        """That it was counted, once it has been let through."""
        self.since: float | None = None
        """When it came to the gate first, in seconds of the monotonic clock."""
        self.waited = 0.0
        """Seconds it has waited there."""
        self._on_urge: Callable[[int], None] | None = None
        self._where: Callable[[], int] | None = None

    def __repr__(self) -> str:
        return f"<Standing P{self.priority} {self.size} bytes, waited {self.waited:.3f} s>"

    @property
    def place(self) -> int | None:
        """How many are before it, while it waits."""
        return None if self._where is None else self._where()

    def waits(self, on_urge: Callable[[int], None], where: Callable[[], int]) -> None:
        """It waits now. `on_urge` is told when somebody more urgent waits for the same; `where` tells its place."""
        self._on_urge, self._where = on_urge, where

    def goes(self) -> None:
        """It waits no longer."""
        self._on_urge = self._where = None

    def urge(self, priority: int) -> None:
        """Somebody of this priority waits for the same answer."""
        if priority >= self.priority:
            return
        self.priority = priority
        if self._on_urge is not None:
            self._on_urge(priority)
