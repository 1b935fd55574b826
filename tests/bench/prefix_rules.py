"""What the rules of the prefix layer cost: milliseconds a call for one large system prompt, every rule on.

    python -m tests.bench.prefix_rules [--calls 3000] [--kilobytes 32]

Exits with 1 if the 99th percentile is not below one millisecond for a usual text and for one with nothing to change;
the rest is for comparison.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable

import re2

from cacheproxy.core.model import Endpoint
from cacheproxy.core.prefix import Clock, Ids, Rules, Stable, stabilise
from cacheproxy.core.texts import Action, Pattern
from tests.engine_real import prompts

MOST_MILLISECONDS = 1.0
UUID = "7d444840-9dc0-11d1-b245-5ffdce74fad2"
LINES = (
    "x-anthropic-billing-header: cc_version=1.0; cch=ab1{n:02d};",
    "Current time: 2026-11-30T22:{n:02d}:01.123Z",
    f"Session id: {UUID}; the customer's number is {{n}}.",
    "Café Münster opens at 9:00, its menu has 12 pages.\r",
    "```\n2026-11-30 22:00:{n:02d} INFO started, request 550e8400-e29b-41d4-a716-446655440000\n```",
    '> she said on 2026-11-30T21:00:00Z that it was "10:30"',
)  # fmt: skip


def text(number: int, size: int) -> str:
    """A system text of `size` characters: rules, and now and then what the rules look for or must let be."""
    body = prompts.rules("bench", size // 80).split("\n")
    for position, line in enumerate(LINES):
        body.insert(position * len(body) // len(LINES), line.format(n=number % 60))
    return "\n".join(body)[:size]


def noiseless(size: int) -> str:
    """A system text in which there is nothing to change."""
    return prompts.rules("bench", size // 60)[:size]


def dense(number: int, size: int) -> str:
    """A system text of nothing but what the rules look for."""
    line = f"At 2026-11-30T22:{number % 60:02d}:01Z request {UUID} of session 4{number % 10}f1e9a2b3c4d5e6f7 came.\r\n"
    return (line * (size // len(line) + 1))[:size]


def everything() -> Rules:
    pattern = Pattern(re2.compile(r"ticket [A-Z]{2}-\d+"), Action.MOVE, "")
    return Rules(clock=Clock.MOVE, ids=Ids.MOVE, tool_noise=True, patterns=(pattern,))


def measure(bodies: list[bytes]) -> list[float]:
    """Milliseconds of processor time of each call, sorted: what others on the machine do is not counted."""
    rules, taken = everything(), []
    for body in bodies:
        fields = json.loads(body)
        began = time.thread_time()
        found = stabilise(Endpoint.CHAT, body, fields, rules)
        taken.append((time.thread_time() - began) * 1000)
        assert isinstance(found, Stable)
    return sorted(taken)


def bodies(make: Callable[[int], str], calls: int, *, tools: bool) -> list[bytes]:
    """Requests whose system texts and orders of tools all differ."""
    made = ({**prompts.same(make(n), n), **({"tools": prompts.tools(n)} if tools else {})} for n in range(calls))
    return [json.dumps(fields, ensure_ascii=False).encode() for fields in made]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.prefix_rules", description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--kilobytes", type=int, default=32)
    options = parser.parse_args()
    size = options.kilobytes * 1024
    rows: list[tuple[str, Callable[[int], str], bool, bool]] = [
        # What is asked, its system text, with tools, whether the limit holds.
        ("usual", lambda n: text(n, size), False, True),
        ("nothing to find", lambda _: noiseless(size), False, True),
        ("usual, with 6 tools", lambda n: text(n, size), True, False),
        ("noise only", lambda n: dense(n, size), False, False),
    ]
    print(f"{options.calls} calls each, a system text of {options.kilobytes} KiB, every rule on")
    print(f"{'text':20} {'p50':>9} {'p99':>9} {'max':>9}")
    slow = False
    for name, make, tools, limited in rows:
        asked = bodies(make, options.calls, tools=tools)
        measure(asked[: options.calls // 10])
        taken = measure(asked)
        p99 = taken[int(0.99 * (len(taken) - 1))]
        slow = slow or (limited and p99 >= MOST_MILLISECONDS)
        limit = f"  (must be below {MOST_MILLISECONDS:g} ms)" if limited else ""
        print(f"{name:20} {taken[len(taken) // 2]:7.3f}ms {p99:7.3f}ms {taken[-1]:7.3f}ms{limit}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
