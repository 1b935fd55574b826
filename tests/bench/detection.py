"""What detection costs: microseconds of one processor for each request that goes to a backend, by what varies in its head
of 32 KB.

    python -m tests.bench.detection

The aim is below 300 at the median: this is done for misses only, which take a backend far longer. `known` is how many
other families of the same scope and model there are. The order of tools varies only where the rule `tools` is off.
"""

import random
import sys
import time
import timeit
from collections.abc import Callable

import orjson

from cacheproxy.core.blocks import Block
from cacheproxy.engine.families import Families
from tests.core.heads import UUIDS, head, prose, tool
from tests.engine.fakes import Notes

SIZE = 32 * 1024
TIMES = 400
AIM = 300


def text(seed: int, size: int = SIZE) -> str:
    return prose(seed, size // 65)[:size]


BODY = text(1)
HALF = text(1, SIZE // 2)
DOCUMENTS = [text(100 + n, SIZE // 2) for n in range(20)]
TOOLS = [tool(f"tool{n}", prose(n, 6), a="string", b="number", c="array") for n in range(40)]


def shuffled(n: int) -> list[Block]:
    tools = TOOLS.copy()
    random.Random(n).shuffle(tools)
    return head(HALF, tools=tools)


VARYING: dict[str, Callable[[int], list[Block]]] = {
    "nothing": lambda n: head(BODY),
    "clock in front": lambda n: head(f"It is 2026-03-01 10:{n // 60 % 60:02}:{n % 60:02} UTC.\n{BODY}"),
    "clock in the midst": lambda n: head(f"{HALF}\nIt is 2026-03-01 10:{n // 60 % 60:02}:{n % 60:02} UTC.\n{HALF}"),
    "clock at the end": lambda n: head(f"{BODY}\nIt is 2026-03-01 10:{n // 60 % 60:02}:{n % 60:02} UTC."),
    "id in front": lambda n: head(f"Session id: {UUIDS[0][:-3]}{n % 4096:03x}\n{BODY}"),
    "name in front": lambda n: head(f"You help Anna{n}.\n{BODY}"),
    "clock, id and name": lambda n: head(
        f"It is 10:{n // 60 % 60:02}:{n % 60:02} now.\nid: {UUIDS[n % 2]}\n{HALF}\nYou help Anna{n}.\n{HALF}"
    ),
    "clock, not ASCII": lambda n: head(f"It is 2026-03-01 10:{n // 60 % 60:02}:{n % 60:02}.\n{BODY.replace('u', 'ü')}"),
    "document": lambda n: head(f"{HALF}\n{DOCUMENTS[n % 20]}"),
    "document in front": lambda n: head(f"{DOCUMENTS[n % 20]}\n{HALF}"),
    "order of tools": shuffled,
    "two prompts in turn": lambda n: head(text(50 + n % 2) if n < 2 else (BODY, DOCUMENTS[0] * 2)[n % 2]),
    "clock in tools": lambda n: head(HALF, tools=[tool("now", f"It is 2026-03-01 10:00:{n % 60:02}."), *TOOLS]),
    "everything": lambda n: head(text(1000 + n)),
}


def measured(make: Callable[[int], list[Block]], known: int) -> list[float]:
    families = Families(Notes())
    for n in range(known):
        families.sent(b"s" * 16, "m", head(prose(10_000 + n, 20)), ())
    heads = [make(n) for n in range(TIMES)]
    # As they come off the wire: no text is an object that was seen before, so that no hash is known.
    fresh = [[Block(b.path, orjson.loads(orjson.dumps(b.text))) for b in one] for one in heads]
    taken = []
    for one in fresh:
        began = time.thread_time()
        families.sent(b"s" * 16, "m", one, ())
        taken.append((time.thread_time() - began) * 1e6)
    return sorted(taken[20:])


def main() -> int:
    worst = 0.0
    print(f"{'varies':20} {'known':>6} {'p50':>8} {'p90':>8} {'p99':>8}  microseconds")
    for name, make in VARYING.items():
        for known in (0, 500):
            taken = measured(make, known)
            p50, p90, p99 = (taken[int(part * len(taken))] for part in (0.5, 0.9, 0.99))
            worst = max(worst, p50)
            print(f"{name:20} {known:6} {p50:8.0f} {p90:8.0f} {p99:8.0f}")
    print(
        f"for comparison, sum(range(5000)) takes {min(timeit.repeat(lambda: sum(range(5000)), number=50)) * 2e4:.0f} here"
    )
    print(f"the worst median is {worst:.0f}, the aim {AIM}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
