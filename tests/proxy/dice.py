"""Random traffic for a proxy, and a backend whose every answer says what it cost; what callers saw is counted."""

import asyncio
import json
import random
from collections import Counter
from typing import Any

from tests import rig
from tests.fakes.backend import Backend, Exchange, chunk, completion, text_completion
from tests.proxy import wire
from tests.proxy.test_responses import document as response

PATHS = {
    "chat": rig.CHAT, "text": "/v1/completions", "responses": "/v1/responses", "embeddings": "/v1/embeddings",
    "rerank": "/v1/rerank", "score": "/v1/score", "models": "/v1/models", "other": "/v1/files",
}  # fmt: skip
ENDPOINTS = {
    "chat": "chat.completions", "text": "completions", "other": "", **{n: n for n in PATHS if n not in ("chat", "text", "other")},
}  # fmt: skip
WISHES = [
    b"Cache-Control: no-cache", b"Cache-Control: no-store", b"Cache-Control: max-age=0", b"Cache-Control: max-age=20",
    b"Cache-Control: only-if-cached", b"Cache-Control: max-stale", b"Cache-Control: stale-if-error=500",
    b"X-Cache-TTL: 5", b"X-Cache-TTL: 0", b"X-Cache-TTL: 99999999", b"X-Cache-Namespace: n", b"X-Priority: P2",
    b"X-Cache-TTL: soon",
]  # fmt: skip
NO_QUESTIONS = [b"{", b"[]", b'{"a":1,"a":2}']
TROUBLE = ["", "", "", "", "", "", "500", "503", "400", "401", "cut", "silent", "length"]


class Costly:
    """A script: answers tell their tokens in their text, and nobody else's cost as much. `trouble`: what goes wrong."""

    def __init__(self) -> None:
        self.trouble = ""
        self.refused: set[bytes] = set()
        self.given = 0
        self.embedded: list[str] = []

    async def __call__(self, exchange: Exchange) -> None:
        target = exchange.seen.target.decode()
        refused = exchange.seen.get(b"authorization") in self.refused
        if target == PATHS["models"] and not refused:
            await exchange.json({"object": "list", "data": [{"id": "m", "object": "model"}]})
        elif self.trouble.isdigit() or refused:
            await exchange.json({"error": {"message": "no"}}, f"{401 if refused else self.trouble} No")
        elif self.trouble == "silent":
            exchange.close = True
        elif target == PATHS["other"] or exchange.seen.body in NO_QUESTIONS:
            await exchange.json({"x": 1})
        else:
            await self._answer(exchange, target, exchange.seen.json)

    async def _answer(self, exchange: Exchange, target: str, asked: dict[str, Any]) -> None:
        self.given += 1
        prompt, said = 10_000 + self.given, 1 + self.given % 7
        usage = {"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said}
        finish = "length" if self.trouble == "length" else "stop"
        if asked.get("stream") is True and target == PATHS["chat"]:
            last = {
                "object": "chat.completion.chunk",
                "created": 1,
                "id": "c",
                "model": "m",
                "choices": [],
                "usage": usage,
            }
            wants = (asked.get("stream_options") or {}).get("include_usage")
            pieces = [chunk({"content": f"{prompt} {said}"}), chunk(finish=finish)]
            pieces += [b"data: " + json.dumps(last).encode() + b"\n\n"] if wants else []
            await self._stream(exchange, pieces)
            return
        document: Any = {"results": [{"index": 0, "relevance_score": 1.0}]}
        if target == PATHS["chat"]:
            document = completion(f"{prompt} {said}", usage=usage)
            document["choices"][0]["finish_reason"] = finish
        elif target == PATHS["text"]:
            document = text_completion(f"{prompt} {said}", usage=usage)
        elif target == PATHS["responses"]:
            document = response(usage={"input_tokens": prompt, "output_tokens": said, "total_tokens": prompt + said})
        elif target == PATHS["score"]:
            document = {"data": [{"index": 0, "score": 0.5}]}
        elif target == PATHS["embeddings"]:
            given = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
            self.embedded, tokens = given, sum(map(len, given))
            data = [{"index": i, "embedding": [float(len(text))]} for i, text in enumerate(given)]
            usage = {"prompt_tokens": tokens, "total_tokens": tokens}
            document = {"object": "list", "model": "m", "data": data, "usage": usage}
        body = json.dumps(document).encode()
        if self.trouble == "cut":
            await exchange.head(Content_Type="application/json", Content_Length=str(len(body)))
            await exchange.send(body[:-3])
            exchange.close = True
        else:
            await exchange.json(body)

    async def _stream(self, exchange: Exchange, pieces: list[bytes]) -> None:
        if self.trouble != "cut":
            await exchange.events(*pieces)
            return
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        await exchange.chunk(pieces[0])
        exchange.close = True


async def body_of(caller: wire.Caller, head: wire.Wire) -> bytes:
    """The body that follows a head."""
    if (length := head.get(b"content-length")) is not None:
        return await caller.reader.readexactly(int(length))
    parts = []
    while data := await caller.chunk():
        parts.append(data)
    return b"".join(parts)


class Traffic:
    """Sends, and counts what callers saw: `seen` by X-Cache, reason and operation, `errors` of ours by code, `spared`
    prompt and completion tokens of what was not generated again."""

    def __init__(self, proxy: rig.InProcess, backend: Backend, clock: rig.Clock, seed: object) -> None:
        self.proxy, self.clock = proxy, clock
        self.dice = random.Random(f"{seed}")
        backend.script = self.costly = Costly()
        self.seen: Counter[tuple[str, str, str]] = Counter()
        self.errors: Counter[str] = Counter()
        self.spared = [0, 0]
        self.texts: list[str] = []

    async def step(self) -> None:
        """One event: some request, or a time that passes."""
        act = self.dice.random()
        if act < 0.08:
            self.clock.time += self.dice.choice([1.0, 9.0, 40.0, 700.0])
        elif act < 0.1:
            await self.proxy.house.store.sweep(self.clock.now())
        elif act < 0.14:
            self.costly.trouble = self.dice.choice(TROUBLE)
            who = b"Bearer %d" % self.dice.randrange(3)
            self.costly.refused = {who} if self.dice.random() < 0.1 else set()
        elif act < 0.2:
            await self.leave()
        elif act < 0.25:
            request = self.request("chat", stream=self.dice.random() < 0.5)
            for answer in await asyncio.gather(*[wire.ask(self.proxy.port, request) for _ in range(5)]):
                self.note("chat", answer)
        else:
            kind = self.dice.choice([*PATHS, "chat", "chat", "embeddings", "embeddings"])
            self.note(kind, await wire.ask(self.proxy.port, self.request(kind, stream=self.dice.random() < 0.4)))

    def request(self, kind: str, *, stream: bool = False) -> bytes:
        """One of few, so that it comes again; sometimes with a wish, sometimes no JSON."""
        number = self.dice.randrange(12)
        body: Any = {"model": "m", "messages": [{"role": "user", "content": str(number)}], "stream": stream}
        if kind == "embeddings":
            texts = self.dice.choices(["a", "bb", "ccc", "dddd", "eeeee", "ffffff"], k=self.dice.randint(1, 4))
            self.texts = texts
            body = {"model": "m", "input": texts if len(texts) > 1 or number % 2 else texts[0]}
        elif kind != "chat":
            body = {
                "model": "m",
                "prompt": f"{number}",
                "query": f"{number}",
                "documents": ["x"],
                "text_1": f"{number}",
                "text_2": "x",
            }
            body = {"model": "m", "input": f"{number}"} if kind == "responses" else body
        if kind == "chat" and self.dice.random() < 0.03:
            body = self.dice.choice(NO_QUESTIONS)
        lines = [self.dice.choice(WISHES)] if self.dice.random() < 0.25 else []
        get = kind == "models"
        return wire.request(
            None if get else body,
            *lines,
            method="GET" if get else "POST",
            path=PATHS[kind],
            key=str(self.dice.randrange(3)),
        )

    async def leave(self) -> None:
        """A caller who reads the head of a stream from the backend, and goes."""
        request = self.request("chat", stream=True).replace(b"Connection: close\r\n", b"")
        async with wire.dial(self.proxy.port) as caller:
            await caller.write(request)
            head = await caller.head()
            if head.get(b"x-cache") not in (b"MISS", b"BYPASS", b"SHADOW"):  # what it spares or says is in its body
                head.body = await body_of(caller, head)
            self.note("chat", head)
        await rig.until(lambda: self.proxy.house.proxy.running == 0)

    def note(self, kind: str, answer: wire.Wire) -> None:
        """Count what a caller saw."""
        state = answer.get(b"x-cache")
        if state is None:
            self.errors[json.loads(answer.body)["error"]["code"]] += 1
            return
        reason = (answer.get(b"x-cache-reason") or b"").decode()
        self.seen[state.decode(), reason, ENDPOINTS[kind]] += 1
        if state in (b"HIT", b"STALE"):
            self._spare(kind, answer)
        elif b"fwd=partial" in (answer.get(b"cache-status") or b"") and answer.status == 200:
            # What stands twice and was asked once is spared as well, but was not found in the cache.
            self.spared[0] += sum(len(text) for text in self.texts if text not in self.costly.embedded)
            assert json.loads(answer.body)["usage"]["prompt_tokens"] == sum(map(len, self.texts))

    def _spare(self, kind: str, answer: wire.Wire) -> None:
        if kind == "chat" and b"event-stream" in (answer.get(b"content-type") or b""):
            told = rig.Answer(200, "", [("content-type", "text/event-stream")], answer.body).text
        elif kind in ("chat", "text"):
            told = rig.Answer(200, "", [], answer.body).text if answer.status == 200 else "0 0"
        elif kind in ("rerank", "score", "models") or answer.status != 200:
            told = "0 0"
        else:
            usage = json.loads(answer.body)["usage"]
            told = f"{usage.get('prompt_tokens', usage.get('input_tokens'))} {usage.get('output_tokens', 0)}"
        for place, tokens in enumerate(told.split()):
            self.spared[place] += int(tokens)
