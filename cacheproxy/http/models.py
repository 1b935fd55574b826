"""Which models every backend serves, by its own list (`GET /v1/models`), read from time to time."""

import asyncio
import logging

import orjson

from cacheproxy.errors import AnswerError, UpstreamCut
from cacheproxy.http.connection import Dropped
from cacheproxy.http.probes import ANSWER_SECONDS, Fetch
from cacheproxy.http.station import Station

log = logging.getLogger("cacheproxy.backend")

PATH = b"/v1/models"
MOST = 10_000
"""Models of one list; a longer one says nothing."""


def read(body: bytes) -> frozenset[str] | None:
    """The names in a list of models, also of those that it is known by as well; None if it is none."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    rows = document.get("data") if isinstance(document, dict) else None
    if not isinstance(rows, list) or len(rows) > MOST:
        return None
    found: set[str] = set()
    for row in rows:
        if isinstance(row, dict):
            aliases = row.get("aliases")
            names = [row.get("id"), *(aliases if isinstance(aliases, list) else ())]
            found.update(name for name in names if isinstance(name, str))
    return frozenset(found) or None


class Models:
    """Keeps what each backend says. One that does not say so to who has no credential is known to serve nothing, and
    no other; one that cannot be asked now is taken to serve what it served."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def look(self, station: Station) -> None:
        """Ask one, unless its configuration says it."""
        if station.upstream.models:
            return
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                status, body = await self._fetch(station.upstream, PATH)
        except (AnswerError, UpstreamCut, Dropped, TimeoutError, OSError) as error:
            log.debug("no list of models of %s: %s", station.upstream.url, type(error).__name__)
            return
        if status < 500:
            station.listed = read(body) if status == 200 else None
