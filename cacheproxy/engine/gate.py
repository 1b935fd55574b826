"""Which knowledge bases are known up to now. No stored answer that rests on another is served.

Whoever brings versions shuts the gate for what it has not looked at yet, and opens it when what it found is in force.
"""

from collections.abc import Iterable

from cacheproxy.core import controls


class Gate:
    """Asked for every stored answer that depends on a knowledge base."""

    def __init__(self) -> None:
        self._shut: set[str] = set()
        self._shut_for_all: set[str] = set()

    def __repr__(self) -> str:
        return f"<Gate {'shut' if self._shut_for_all else f'shut for {len(self._shut)}'}>"

    def shut(self, name: str) -> None:
        """The version of this knowledge base is not known."""
        self._shut.add(name)

    def open(self, name: str) -> None:
        """It is known again."""
        self._shut.discard(name)

    def shut_for_all(self, who: str) -> None:
        """No version is certain: `who` has not been heard to the end."""
        self._shut_for_all.add(who)

    def open_for_all(self, who: str) -> None:
        """It has been heard."""
        self._shut_for_all.discard(who)

    def passes(self, knowledge: Iterable[str]) -> bool:
        """Whether an answer that depends on these may be served. `knowledge`: names in the canonical form."""
        if not self._shut and not self._shut_for_all:
            return True
        names = {controls.spoken(one)[0] for one in knowledge}
        return not names or (not self._shut_for_all and self._shut.isdisjoint(names))
