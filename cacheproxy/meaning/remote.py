"""Embeddings from a server that speaks OpenAI's ``/v1/embeddings``, such as vLLM, llama.cpp or the hosted API.

A text that comes while no call is under way is sent at once; those that come meanwhile go together with the next call.
What is under way goes on though a caller leaves, since others may wait for it. A text that the server refuses is no
trouble with the server.
"""

import asyncio
from typing import Any

import aiohttp
import numpy as np
import orjson
from cachetools import LRUCache
from numpy.typing import NDArray

from cacheproxy.core.model import Identity, Unfit
from cacheproxy.errors import Trouble
from cacheproxy.meaning.vectors import Floats, unit

MOST = 32
"""Texts in one call."""
REFUSED = frozenset({400, 413, 422})
"""Statuses that say something about the text and not about the server."""
LONGEST = 64 * 2**20
"""Bytes of an answer above which it is not read."""

_Name = tuple[bytes, str]


class Remote:
    """An `Embedder` behind `url`, with or without ``/v1``; it gives vectors of `identity.dim` numbers. `most_chars`:
    longer texts are not sent; `memo`: vectors that are remembered; `seconds`: the longest that a call may take."""

    def __init__(  # noqa: PLR0913 - what it is told, by name
        self, url: str, identity: Identity, *, api_key: str | None = None, most_chars: int = 2000, memo: int = 10_000,
        seconds: float = 10.0,
    ) -> None:  # fmt: skip
        self.identity = identity
        self._url = f"{url.rstrip('/').removesuffix('/v1')}/v1/embeddings"
        self._fields = {"Content-Type": "application/json"}
        if api_key is not None:
            self._fields["Authorization"] = f"Bearer {api_key}"
        self._most_chars = most_chars
        self._seconds = seconds
        self._memo: LRUCache[_Name, Floats] = LRUCache(memo)
        self._waiting: dict[_Name, asyncio.Future[Floats | Unfit]] = {}
        self._session: aiohttp.ClientSession | None = None
        self._caller: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Remote {self.identity.name} {len(self._memo)} remembered>"

    async def embed(self, text: str, scope: bytes) -> NDArray[np.float32] | Unfit:
        if not text.strip():
            return Unfit.EMPTY
        if len(text) > self._most_chars:
            return Unfit.TOO_LONG
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            return Unfit.UNKNOWN_TOKENS  # half of a pair, which JSON cannot say
        name = (scope, text)
        if (known := self._memo.get(name)) is not None:
            return known
        if name not in self._waiting:
            self._waiting[name] = asyncio.get_running_loop().create_future()
        future = self._waiting[name]
        if self._caller is None:
            self._caller = asyncio.get_running_loop().create_task(self._call_all())
        return await asyncio.shield(future)

    async def _call_all(self) -> None:
        """One call after the other, until nobody waits."""
        try:
            while self._waiting:
                names = list(self._waiting)[:MOST]
                try:
                    found = await self._call([text for _, text in names])
                except Trouble as trouble:
                    self._settle(names, [Trouble(str(trouble), trouble.kind) for _ in names])
                else:
                    self._settle(names, found)
        finally:
            self._caller = None
            self._settle(list(self._waiting), [Trouble("closed", "closed") for _ in self._waiting])

    def _settle(self, names: list[_Name], found: list[Floats | Unfit | Trouble]) -> None:
        for name, one in zip(names, found, strict=True):
            future = self._waiting.pop(name)
            if isinstance(one, Trouble):
                future.set_exception(one)
                future.exception()  # seen, even if all who asked have gone
                continue
            if not isinstance(one, Unfit):
                self._memo[name] = one
            future.set_result(one)

    async def _call(self, texts: list[str]) -> list[Floats | Unfit | Trouble]:
        status, body = await self._post(texts)
        if status in REFUSED:
            if len(texts) == 1:
                return [Unfit.TOO_LONG]
            return [one for text in texts for one in await self._call([text])]
        if status != 200:
            raise Trouble(f"the embedding server answers {status}", "status")
        return list(self._vectors(body, len(texts)))

    async def _post(self, texts: list[str]) -> tuple[int, bytes]:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self._seconds), headers=self._fields, trust_env=False
            )
        asked = {"model": self.identity.name, "input": [self.identity.prefix + text for text in texts]}
        try:
            async with self._session.post(self._url, data=orjson.dumps(asked), allow_redirects=False) as answer:
                body = bytearray()
                while len(body) <= LONGEST and (piece := await answer.content.readany()):
                    body += piece
                if len(body) > LONGEST:
                    raise Trouble("the embedding server's answer has no end", "protocol")
                return answer.status, bytes(body)
        except TimeoutError:
            raise Trouble("the embedding server took too long", "timeout") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Trouble("the embedding server cannot be reached", type(error).__name__) from None

    def _vectors(self, body: bytes, count: int) -> list[Floats]:
        """The vectors of an answer, in the order of the texts."""
        try:
            rows: list[Any] = sorted(orjson.loads(body)["data"], key=lambda row: row["index"])
            given = [np.asarray(row["embedding"], np.float32) for row in rows]
            numbered = [row["index"] for row in rows] == list(range(count))
        except (ValueError, KeyError, TypeError):
            raise Trouble("the embedding server gives something else than embeddings", "protocol") from None
        if not numbered:
            raise Trouble("the embedding server gives more or fewer than was asked for", "protocol")
        return [unit(vector, self.identity.dim) for vector in given]

    async def warm(self) -> None:
        """Nothing: a server that is not there yet must not keep the proxy from starting."""

    async def close(self) -> None:
        if self._caller is not None:
            self._caller.cancel()
            await asyncio.wait([self._caller])
        if self._session is not None:
            await self._session.close()
