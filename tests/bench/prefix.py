"""Time to first token by what stands in the system prompt, directly and through the proxy, before a real engine.

    python -m tests.bench.prefix [--rounds 2] [--requests 3] [--rules 130] [--layers 4] [--json FILE]

Each row is asked by itself: a first request that is not counted, then the counted ones, which differ in the question
and in what the row names. All rows in turn, as many rounds as asked; the share of cached tokens is the engine's own.
"""

import argparse
import http.client
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.engine_real import prompts
from tests.parts import demo, engine

OFF, DEFAULT, MOVE, COARSEN = "no rules", "default rules", "clock: move", "clock: coarsen"
PROXIES = {
    OFF: {"CACHEPROXY_PREFIX__MODE": "off"},
    DEFAULT: {},
    MOVE: {"CACHEPROXY_PREFIX__RULES__CLOCK": "move"},
    COARSEN: {"CACHEPROXY_PREFIX__RULES__CLOCK": "coarsen"},
}
DIRECT = "direct"


@dataclass
class Row:
    """What is sent, the way it takes, and what was measured: seconds and tokens."""

    name: str
    kind: prompts.Kind
    way: str
    seconds: list[float] = field(default_factory=list)
    prompt: int = 0
    cached: int = 0

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def rows() -> list[Row]:
    return [
        Row("same", prompts.same, DIRECT),
        Row("same", prompts.same, DEFAULT),
        Row("timestamp in front", prompts.clocked, DIRECT),
        Row("timestamp in front", prompts.clocked, DEFAULT),
        Row("timestamp in front", prompts.clocked, MOVE),
        Row("timestamp in front", prompts.clocked, COARSEN),
        Row("nonce line", prompts.agent, DIRECT),
        Row("nonce line", prompts.agent, OFF),
        Row("nonce line", prompts.agent, DEFAULT),
        Row("LF and CRLF", prompts.mixed, DIRECT),
        Row("LF and CRLF", prompts.mixed, OFF),
        Row("LF and CRLF", prompts.mixed, DEFAULT),
        Row("tools in any order", prompts.shuffled, DIRECT),
        Row("tools in any order", prompts.shuffled, OFF),
        Row("tools in any order", prompts.shuffled, DEFAULT),
    ]


def ask(base: str, body: dict[str, object]) -> tuple[float, dict]:
    """Seconds to the first event of the answer, and its usage."""
    place = urllib.parse.urlsplit(base)
    sent = json.dumps({**body, "stream": True, "stream_options": {"include_usage": True}}).encode()
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=300)
    began = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", sent, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    first, usage = 0.0, None
    for line in answer:
        if line.startswith(b"data: {"):
            first = first or time.perf_counter() - began
            usage = json.loads(line[6:]).get("usage") or usage
    connection.close()
    if answer.status != 200 or usage is None:
        raise SystemExit(f"{base} answers {answer.status} without usage")
    return first, usage


def measure(row: Row, base: str, text: str, turn: int, requests: int) -> None:
    for number in range(requests + 1):
        # A question is never asked twice, or the proxy would answer it itself.
        seconds, usage = ask(base, row.kind(text, turn * 1000 + number))
        if number:
            row.seconds.append(seconds)
            row.prompt += usage["prompt_tokens"]
            row.cached += usage["prompt_tokens_details"]["cached_tokens"]


@contextmanager
def proxies(upstream: str, directory: Path) -> Iterator[dict[str, str]]:
    """A proxy for each set of rules; their URLs, and the engine's own."""
    started: list[subprocess.Popen] = []
    ways = {DIRECT: upstream}
    before = dict(os.environ)
    try:
        for number, (name, environment) in enumerate(PROXIES.items()):
            os.environ.update(environment)
            port, admin = free(), free()
            started.append(demo.start_proxy(upstream, port, admin, directory / f"proxy{number}.log"))
            ways[name] = f"http://127.0.0.1:{port}"
            for variable in environment:
                os.environ.pop(variable)
        yield ways
    finally:
        os.environ.clear()
        os.environ.update(before)
        for process in started:
            process.terminate()
        for process in started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)


def free() -> int:
    """A port that nothing listens on."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def table(measured: list[Row]) -> str:
    """The rows as a table; each ratio is to `same`, sent the same way or else directly."""
    lines = [f"{'what is sent':20} {'way':16} {'TTFT p50':>9} {'to same':>8} {'cached':>8} {'of prompt':>10}"]
    base = {row.way: row.median for row in measured if row.kind is prompts.same}
    for row in measured:
        ratio = row.median / (base[DIRECT] if row.way == DIRECT else base[DEFAULT])
        share, tokens = 100 * row.cached / row.prompt, row.prompt // len(row.seconds)
        lines.append(f"{row.name:20} {row.way:16} {row.median:8.3f}s {ratio:7.1f}x {share:7.1f}% {tokens:10}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.prefix", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2, help="how often all rows are asked [2]")
    parser.add_argument("--requests", type=int, default=3, help="counted requests of a row in a round [3]")
    parser.add_argument("--rules", type=int, default=130, help="length of the system prompt, 24 tokens each [130]")
    parser.add_argument("--layers", type=int, default=4, help="layers of the model; 0 for the whole of it [4]")
    parser.add_argument("--json", type=Path, help="write what was measured to this file")
    options = parser.parse_args()
    measured = rows()
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "engine"
        running = engine.start(log, context=8192, layers=options.layers, template=prompts.TEMPLATE)
        try:
            with proxies(running.url, Path(place)) as ways:
                for turn in range(options.rounds):
                    for position, row in enumerate(measured):
                        text = prompts.rules(f"{turn}-{position}", options.rules)
                        measure(row, ways[row.way], text, turn, options.requests)
                        print(f"\rround {turn + 1}/{options.rounds}, row {position + 1}/{len(measured)}", end="",
                              file=sys.stderr, flush=True)  # fmt: skip
        finally:
            running.stop()
    print(file=sys.stderr)
    layers = f"its first {options.layers} layers" if options.layers else "whole"
    print(f"engine: llama.cpp (xllamacpp), one slot, one thread; model {engine.MODEL}, {layers}")
    print(f"machine: {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
          f"Python {platform.python_version()}")  # fmt: skip
    print(f"{options.rounds} rounds of {options.requests} counted requests a row, max_tokens 1, streamed\n")
    print(table(measured))
    if options.json:
        told = [{"what": r.name, "way": r.way, "seconds": r.seconds, "prompt": r.prompt, "cached": r.cached}
                for r in measured]  # fmt: skip
        options.json.write_text(json.dumps(told, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
