"""A knowledge base whose version rises, and a backend that answers from it: each answer says which version was current
when its making began. It embeds too, so that two wordings of one question are near, and no two questions are."""

import asyncio
import json
import random

from tests.fakes.backend import Exchange, chunk, completion, plain, usage_chunk

BASE = "handbook"
_THINGS = (
    "account address alarm badge balance battery booking bridge calendar camera card charger clock contract cursor "
    "desk dial display door engine fan filter folder gateway heater invoice keyboard lamp laptop ledger lock mailbox "
    "meter microphone monitor mouse order password phone printer profile projector router scanner screen sensor "
    "server speaker tablet thermostat"
)
NOUNS = _THINGS.split()
WORDINGS = ("How do I reset the {}?", "How can I reset the {}?")
LIKENESS = 0.97
DIM = 64
DOCUMENTS = 4


def question(number: int, wording: int = 0) -> str:
    return WORDINGS[wording].format(NOUNS[number])


def number_in(text: str) -> int | None:
    """Which question it is, whatever its wording."""
    words = text.rstrip("?").split()
    return NOUNS.index(words[-1]) if words and words[-1] in NOUNS else None


def document_of(number: int) -> str | None:
    """What the answer to a question was read in; of every fifth nobody says."""
    return f"d{number % 5}" if number % 5 < DOCUMENTS else None


def changed_in(version: int) -> list[str] | None:
    """The documents that are new in a version; None: all may be."""
    return None if version % 6 == 0 else [f"d{version % DOCUMENTS}"]


def means(version: int, number: int) -> bool:
    """Whether an answer to that question from before a version is wrong after it."""
    changed = changed_in(version)
    return changed is None or document_of(number) is None or document_of(number) in changed


def asks_for_base(number: int) -> bool:
    """Whether the request says what its answer rests on. Where it does not, the backend does."""
    return number % 3 != 1


def vector(text: str) -> list[float]:
    found, axis = [0.0] * DIM, number_in(text)
    if axis is None:
        found[DIM - 2] = 1.0
    elif text == question(axis):
        found[axis] = 1.0
    else:
        found[axis], found[DIM - 1] = LIKENESS, (1 - LIKENESS**2) ** 0.5
    return found


class Lore:
    """The backend's script. `current` is the version that answers are made from."""

    def __init__(self, seed: int) -> None:
        self.current = self.calls = 0
        self._dice = random.Random(seed)

    async def __call__(self, exchange: Exchange) -> None:
        if b"/embeddings" in exchange.seen.target:
            given = exchange.seen.json["input"]
            rows = [{"index": i, "object": "embedding", "embedding": vector(text)} for i, text in enumerate(given)]
            await exchange.json({"object": "list", "data": rows, "model": "fake"})
        elif b"completions" in exchange.seen.target:
            await self._answer(exchange, exchange.seen.json)
        else:
            await self._think()  # whether a caller is known
            await plain(exchange)

    async def _answer(self, exchange: Exchange, asked: dict) -> None:
        self.calls += 1
        began, number = self.current, number_in(asked["messages"][-1]["content"])
        await self._think()
        told, extra = f"{began} {NOUNS[number]}", self._head(number, began)
        if not asked.get("stream"):
            await exchange.json(completion(f"{told} until {self.current}"), extra=extra)
            return
        kind = b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
        await exchange.send(b"HTTP/1.1 200 OK\r\n" + kind + extra + b"\r\n")
        await exchange.chunk(chunk({"role": "assistant", "content": told}))
        await self._think()
        await exchange.chunk(chunk({"content": f" until {self.current}"}) + chunk(finish="stop"))
        if (asked.get("stream_options") or {}).get("include_usage"):
            await exchange.chunk(usage_chunk())
        await exchange.chunk(b"data: [DONE]\n\n")
        await exchange.end()

    def _head(self, number: int, version: int) -> bytes:
        """What the backend says of its answer: sometimes the version that it read."""
        lines = [f"Cache-Tag: doc:{document_of(number)}"] if document_of(number) else []
        if not asks_for_base(number):
            lines.append(f"X-Cache-KB: {BASE}")
        elif number % 3 == 2:
            lines.append(f"X-Cache-KB: {BASE}@{version}")
        return "".join(f"{line}\r\n" for line in lines).encode()

    async def _think(self) -> None:
        """Seldom as long as two versions."""
        long = self._dice.random() < 0.1
        await asyncio.sleep(self._dice.uniform(0.1, 0.5) if long else self._dice.uniform(0.001, 0.02))


def read(text: str) -> tuple[int, str]:
    """The version and the noun that an answer states. Anything but a whole answer fails."""
    version, noun, until, last = text.split()
    assert until == "until"
    assert int(last) >= int(version)
    return int(version), noun


def asked(number: int, wording: int, *, stream: bool) -> dict:
    """The fields of a request."""
    fields = {"messages": [{"role": "user", "content": question(number, wording)}]}
    return {**fields, "stream": True} if stream else fields


def version_of(since: range) -> bytes:
    """What is told of the last of some versions, none of which has been told of."""
    told: dict = {"version": str(since[-1])}
    if all(changed_in(version) is not None for version in since):
        told["changed_documents"] = sorted({name for version in since for name in changed_in(version)})
    return json.dumps(told).encode()
