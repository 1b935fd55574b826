"""A request's standing before the gate to the backend: how urgent it is, whose it is, and what it holds while it waits.
Written by who sends it, read by who keeps the gate; `urge` is the one change that others may make.
"""

from collections.abc import Awaitable, Callable


class Standing:
    """`priority`: 0 is the most urgent, 2 the least; `tenant`: the fingerprint of the credential; `model`: as asked, empty
    if unknown; `size`: bytes that it holds; `name`: by what it is known when it is asked again, empty for nothing;
    `patience`: seconds it waits at most, None for as long as its class does, 0 for not at all.

    `recheck` is called when it has waited and its turn has come: what it raises ends it in place of its being sent.
    """

    __slots__ = ("_on_urge", "model", "name", "patience", "place", "priority", "recheck", "size", "tenant", "waited")

    def __init__(
        self, priority: int, tenant: bytes, *, model: str = "", size: int = 0, name: bytes = b"",
        patience: float | None = None, recheck: Callable[[], Awaitable[None]] | None = None,
    ) -> None:  # fmt: skip
        self.priority = priority
        self.tenant = tenant
        self.model = model
        self.size = size
        self.name = name
        self.patience = patience
        self.recheck = recheck
        self.waited = 0.0
        """Seconds it has waited at the gate."""
        self.place: int | None = None
        """How many of its class are before it, while it waits."""
        self._on_urge: Callable[[int], None] | None = None

    def __repr__(self) -> str:
        return f"<Standing P{self.priority} {self.size} bytes{'' if self.place is None else f' at {self.place}'}>"

    def waits(self, on_urge: Callable[[int], None] | None) -> None:
        """It waits now, and `on_urge` is to be told when somebody more urgent waits for the same; None: no longer."""
        self._on_urge = on_urge

    def urge(self, priority: int) -> None:
        """Somebody of this priority waits for the same answer."""
        if priority >= self.priority:
            return
        self.priority = priority
        if self._on_urge is not None:
            self._on_urge(priority)
