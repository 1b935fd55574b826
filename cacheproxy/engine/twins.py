"""Questions whose answer is being generated: a like one waits for it, and has it if it passes every check.

Found likewise as among stored answers, guards and second opinion before the waiting, so that nobody waits for the
answer to another question; what is served in the end is a stored answer that has passed once more.
"""

from cacheproxy.core.model import Near
from cacheproxy.engine.asked import Asked
from cacheproxy.engine.bound import Bound
from cacheproxy.engine.flight import Flight, Flights
from cacheproxy.engine.scrutiny import Like, Scrutiny
from cacheproxy.engine.semantic import Semantic
from cacheproxy.ports import Journal


class Twins:
    """Looks among the running answers."""

    def __init__(self, *, flights: Flights, semantic: Semantic, scrutiny: Scrutiny, journal: Journal) -> None:
        self._flights = flights
        self._semantic = semantic
        self._scrutiny = scrutiny
        self._journal = journal

    async def wait(self, bound: Bound, asked: Asked) -> Like | None:
        """The answer to a like question that is being generated now, when it has been stored; None if there is none,
        or it came to nothing. Never raises."""
        threshold = self._semantic.threshold(bound)
        running = self._running(bound, asked)
        near = [candidate for candidate, _ in running.values()]
        twin = await self._scrutiny.twin(bound, asked, near, threshold)
        if twin is None:
            return None
        candidate, flight = running[twin]
        if not flight.running:
            return None
        reader = flight.reader()
        try:
            ending = await reader.outlast()
        finally:
            reader.close()
        found = None
        if ending is not None and ending.reason is None and ending.error is None:
            found = (await self._scrutiny.look(bound, asked, [candidate], threshold)).like
        self._journal.count("coalesced", "twin" if found is not None else "other_twin")
        return found

    def _running(self, bound: Bound, asked: Asked) -> dict[bytes, tuple[Near, Flight]]:
        """The running answers to questions of the same partition, by the key of their request."""
        found = {}
        for flight in self._flights.shared():
            other = flight.work.bound.asked
            if other is None or other.partition != asked.partition or flight.key == bound.ask.key:
                continue
            similarity = float(other.vector @ asked.vector)
            found[flight.key] = (Near(flight.key, similarity, None, None, other.text), flight)
        return dict(sorted(found.items(), key=lambda one: -(one[1][0].similarity or 0.0)))
