"""A backend that reads strictly: it keeps every byte it got and answers only what one strict reading can be of.

Its answers repeat what was asked, so that an answer that went to somebody else is seen.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.fakes.backend import bare, completion
from tests.hostile import strict


@dataclass
class Tap:
    """What came. `requests`: the well-framed ones in order; `faults`: why bytes were none; `rests`: for each
    connection the bytes that no request took."""

    url: str = ""
    requests: list[strict.Message] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    rests: list[bytes] = field(default_factory=list)

    @property
    def waiting(self) -> list[bytes]:
        """What each connection still has of a request that is not whole. One that is closed waits for nothing."""
        return self.rests

    @property
    def asked(self) -> list[tuple[bytes, bytes, bytes]]:
        """Method, target and body of each request."""
        return [(*r.first, r.body) for r in self.requests]

    def forget(self) -> None:
        """Forget the requests so far."""
        self.requests.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.rests)
        self.rests.append(b"")
        try:
            while data := await reader.read(65536):
                self.rests[number] += data
                while self.rests[number]:
                    try:
                        request, self.rests[number] = strict.request(self.rests[number])
                    except strict.Unfinished:
                        break
                    self.requests.append(request)
                    writer.write(reply(request))
                await writer.drain()
        except strict.NotStrict as error:
            self.faults.append(f"{error} in {self.rests[number][:300]!r}")
        finally:
            self.rests[number] = b""


def echo(method: bytes, target: bytes, body: bytes) -> list[str]:
    """What the answer to such a request repeats."""
    return [part.decode("latin-1") for part in (method, target, body)]


def reply(request: strict.Message) -> bytes:
    method, target = request.first
    body = json.dumps(completion(json.dumps(echo(method, target, request.body)))).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    return head if method == b"HEAD" else head + body


def echoed(answer: strict.Message) -> list[str]:
    """What an answer repeats."""
    return json.loads(json.loads(answer.body)["choices"][0]["message"]["content"])


@asynccontextmanager
async def tapping() -> AsyncIterator[Tap]:
    """A running tap."""
    tap = Tap()
    async with bare(tap.serve) as tap.url:
        yield tap
