"""What the suites stand on: a proxy in this process or in one of its own, and clients that show every byte."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from cacheproxy import settings as configuration
from cacheproxy.wiring import House, Running

ROOT = Path(__file__).parent.parent


async def until(met, seconds: float = 10.0, what: str = "the condition") -> None:
    """Wait for a condition, never for a duration."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not met():
        if loop.time() > deadline:
            raise AssertionError(f"{what} was not met within {seconds} s")
        await asyncio.sleep(0.002)


@dataclass
class Answer:
    """An answer as read by a client that keeps every header line."""

    status: int
    phrase: str
    headers: list[tuple[str, str]]
    body: bytes

    def get(self, name: str) -> str | None:
        return next((v for n, v in self.headers if n.lower() == name.lower()), None)

    def all(self, name: str) -> list[str]:
        return [v for n, v in self.headers if n.lower() == name.lower()]

    @property
    def cache(self) -> str | None:
        return self.get("x-cache")

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[bytes]:
        """The data of each event, by hand."""
        blocks = re.split(rb"\r\n\r\n|\n\n|\r\r", self.body)
        found = []
        for block in blocks:
            lines = [
                line[5:].removeprefix(b" ") for line in re.split(rb"\r\n|\n|\r", block) if line.startswith(b"data:")
            ]
            if lines:
                found.append(b"\n".join(lines))
        return found

    @property
    def documents(self) -> list[Any]:
        return [json.loads(e) for e in self.events if e.strip() != b"[DONE]"]

    @property
    def text(self) -> str:
        """The text of the first choice, streamed or not (chat or completions)."""
        if (self.get("content-type") or "").startswith("text/event-stream"):
            choices = [c for d in self.documents for c in d.get("choices") or () if c["index"] == 0]
            return "".join((c["delta"].get("content") if "delta" in c else c.get("text")) or "" for c in choices)
        choice = self.json["choices"][0]
        return choice["message"]["content"] if "message" in choice else choice["text"]


CHAT = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Say hello."}]}


@dataclass
class Client:
    """Asks the proxy."""

    base: str
    session: aiohttp.ClientSession

    async def send(
        self, body: Any = None, *, method: str = "POST", path: str = CHAT, key: str | None = "A", **headers: str
    ) -> Answer:
        """Send `body` (an object, or raw bytes); header names with `_` for `-`."""
        lines = {n.replace("_", "-"): v for n, v in headers.items()}
        if key is not None:
            lines.setdefault("Authorization", f"Bearer {key}")
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if data is not None:
            lines.setdefault("Content-Type", "application/json")
        async with self.session.request(method, self.base + path, data=data, headers=lines) as answer:
            headers_seen = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in answer.raw_headers]
            return Answer(answer.status, answer.reason or "", headers_seen, await answer.read())

    async def chat(self, body: Any = None, **fields: Any) -> Answer:
        """Ask a chat completion: `BODY` with `fields` changed; `key=` and header arguments go to `send`."""
        options = {n: fields.pop(n) for n in list(fields) if n in ("key", "path") or n[0].isupper()}
        return await self.send({**(body or BODY), **fields}, **options)


@dataclass
class InProcess:
    """A proxy on this event loop."""

    house: House
    running: Running
    base: str
    admin: str

    @property
    def port(self) -> int:
        return int(self.base.rsplit(":", 1)[1])


async def start(backend_url: str | list[str], *, embedder: Any = None, **values: Any) -> InProcess:
    """Start a proxy here. `values` by dotted name with `__` for the dot, e.g. ``exact__ttl="1s"``; with an `embedder`
    it answers by meaning too."""
    flags: dict[str, Any] = {
        "upstreams": backend_url if isinstance(backend_url, list) else [backend_url],
        "listen.port": 0, "admin.port": 0, "store.data_dir": "none",
    }  # fmt: skip
    flags.update({name.replace("__", "."): value for name, value in values.items()})
    # A real model is not what most tests are about, and takes time to load.
    flags.setdefault("semantic.mode", "on" if embedder is not None or "semantic.url" in flags else "off")
    house = House(configuration.resolve(flags, None, {}).settings, embedder)
    running = Running(house)
    base, admin = await running.start()
    return InProcess(house, running, base, admin)


@dataclass
class Process:
    """A proxy in a process of its own, as a user starts it."""

    process: subprocess.Popen
    base: str
    admin: str
    log: Path
    lines: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.base.rsplit(":", 1)[1])

    def output(self) -> str:
        return self.log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    async def exit(self, seconds: float = 40.0) -> int:
        await until(lambda: self.process.poll() is not None, seconds, "the exit")
        return self.process.returncode


async def spawn(backend_url: str | None, log: Path, *arguments: str, **environment: str) -> Process:
    """Start ``cacheproxy serve`` on free ports and wait until it is ready. None: the backends are in the
    configuration."""
    upstream = ["--upstream", backend_url] if backend_url is not None else []
    command = [
        sys.executable, "-m", "cacheproxy", "serve", *upstream, "--port", "0", "--admin-port", "0", *arguments,
    ]  # fmt: skip
    with log.open("ab") as out:
        out.truncate(0)
        environment.setdefault("CACHEPROXY_SEMANTIC__MODE", "off")  # takes time to load; its own tests say `on`
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=ROOT, env={**os.environ, **environment})

    def ready() -> bool:
        return "ready:" in log.read_text() or process.poll() is not None

    await until(ready, 30, "readiness")
    found = re.search(r"ready: (\S+) answers .* admin page (\S+)", log.read_text())
    if found is None:
        raise AssertionError(f"the proxy did not start: {log.read_text()}")
    return Process(process, found.group(1), found.group(2), log)


async def raw(port: int, data: bytes, *, pieces: float | None = None) -> bytes:
    """Send bytes on a fresh connection and read until the other side closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        await writer.drain()
        return await asyncio.wait_for(reader.read(), 30)
    finally:
        writer.close()


class Clock:
    """A clock that a test moves: the wall clock stands still, the monotonic one is the machine's."""

    def __init__(self) -> None:
        self.time = 1_800_000_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return time.monotonic()
