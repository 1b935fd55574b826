"""What embedding costs: milliseconds of one short question, of 32 at once, of one beside others; seconds to load; memory.

    python -m tests.bench.embedder [--model DIRECTORY] [--threads 1] [--rounds 3]

Through the whole embedder, on one thread; each way in a process of its own, in turn, so that both see the same machine.
The way of sentence-transformers is measured if that is installed. The aim for 32 at once is 4 times the time of one.
`alone` is what the loop and the threads add to the computation itself; `crowd` is a question that comes while others do,
every 2 ms; `long` is one of 200 tokens.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import psutil

from cacheproxy.meaning import embedder as embedders
from cacheproxy.meaning.embedder import LocalEmbedder, open_embedder
from tests.parts import embedder as part
from tests.parts.place import ROOT

WAYS = {"runtime": "onnxruntime", "transformer": "sentence_transformers"}
WORDS = (  # noqa: SIM905
    "how can i reset my card pin for the account when it was lost abroad and what does the bank charge me to send a new"
    " one why did transfer fail order app phone change address payment refund top up exchange rate fee"
).split()  # fmt: skip
ASKED, TOGETHER, TURNS = 200, 32, 20
AIM = 4.0


def question(dice: random.Random) -> str:
    return " ".join(dice.choice(WORDS) for _ in range(dice.randint(6, 12)))


def percentile(taken: Sequence[float], share: float) -> float:
    return sorted(taken)[min(len(taken) - 1, int(share * len(taken)))]


async def timed(embedder: LocalEmbedder, texts: list[str]) -> float:
    """Milliseconds until all have their vectors."""
    began = time.perf_counter()
    await asyncio.gather(*[embedder.embed(text, b"") for text in texts])
    return (time.perf_counter() - began) * 1000


async def crowded(embedder: LocalEmbedder, dice: random.Random) -> list[float]:
    asked = []
    for _ in range(ASKED):
        asked.append(asyncio.create_task(timed(embedder, [question(dice)])))
        await asyncio.sleep(0.002)
    return await asyncio.gather(*asked)


def bare(embedder: LocalEmbedder, dice: random.Random) -> float:
    """The computation without loop and threads."""
    model, taken = embedder._model, []
    for _ in range(ASKED):
        text = question(dice)
        began = time.perf_counter()
        model.vectors([model.read(text)])
        taken.append((time.perf_counter() - began) * 1000)
    return percentile(taken, 0.5)


async def measure(model: str, threads: int) -> dict[str, float]:
    dice, process = random.Random(), psutil.Process()
    before = process.memory_info().rss
    began = time.perf_counter()
    embedder = open_embedder("all-MiniLM-L6-v2", path=model, threads=threads, memo=1)
    await embedder.warm()
    loaded = time.perf_counter() - began
    await timed(embedder, [question(dice) for _ in range(TOGETHER)])
    one = [await timed(embedder, [question(dice)]) for _ in range(ASKED)]
    many = [await timed(embedder, [question(dice) for _ in range(TOGETHER)]) for _ in range(TURNS)]
    long = [await timed(embedder, [f"{n} " + " ".join(dice.choice(WORDS) for _ in range(195))]) for n in range(TURNS)]
    alone = percentile(one, 0.5) - bare(embedder, dice)
    crowd = await crowded(embedder, dice)
    await embedder.close()
    return {
        "load": loaded, "memory": (process.memory_info().rss - before) / 2**20, "one": percentile(one, 0.5),
        "one99": percentile(one, 0.99), "many": percentile(many, 0.5), "long": percentile(long, 0.5),
        "crowd": percentile(crowd, 0.5), "crowd99": percentile(crowd, 0.99), "alone": alone,
    }  # fmt: skip


def force(way: str) -> None:
    """Let this process find nothing but what `way` needs."""
    other = WAYS[next(each for each in WAYS if each != way)]
    embedders.find_spec = lambda name: None if name == other else find_spec(name)


def in_turn(ways: list[str], options: argparse.Namespace, run: Callable[[str], dict[str, float]]) -> None:
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(options.rounds):
        for way in ways:
            runs[way].append(run(way))
    print(
        f"{options.threads} thread(s), {options.rounds} rounds; the best of each figure\n"
        "way           load s  MiB   one p50   p99   32 at once  times one   long   crowd p50   p99   alone"
    )
    for way, seen in runs.items():
        best = {name: min(each[name] for each in seen) for name in seen[0]}
        times = min(each["many"] / each["one"] for each in seen)
        print(
            f"{way:12} {best['load']:7.1f} {best['memory']:5.0f} {best['one']:8.2f} {best['one99']:6.1f}"
            f" {best['many']:11.1f} {times:9.1f}x {best['long']:7.1f} {best['crowd']:10.1f} {best['crowd99']:6.1f}"
            f" {best['alone']:7.2f}"
        )
        if times > AIM:
            print(f"{way}: {TOGETHER} at once take {times:.1f} times the time of one; the aim is {AIM:.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.embedder", description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a directory with all-MiniLM-L6-v2 [the one of make parts]")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    model = options.model or str(part.install())
    if options.way:
        force(options.way)
        print(json.dumps(asyncio.run(measure(model, options.threads))))
        return 0
    ways = [way for way, package in WAYS.items() if find_spec(package)]
    words = ["--model", str(Path(model).absolute()), "--threads", str(options.threads)]

    def run(way: str) -> dict[str, float]:
        done = subprocess.run(
            [sys.executable, "-m", "tests.bench.embedder", *words, "--way", way], stdout=subprocess.PIPE, check=True,
            stderr=subprocess.DEVNULL, env={**os.environ, "HF_HUB_OFFLINE": "1"}, cwd=ROOT,
        )  # fmt: skip
        return json.loads(done.stdout)

    in_turn(ways, options, run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
