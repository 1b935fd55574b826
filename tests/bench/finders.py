"""What the finders of volatile values cost: moments, identifiers and quoted regions, in usual and in hostile prompts.

    python -m tests.bench.finders

Usual prompts have 32 KB, with and without spans; hostile ones 64 KB and 1 MB: a ratio of about 16 is linear.
"""

import random
import sys
import time
from collections.abc import Callable

from cacheproxy.core import idents as core_idents
from cacheproxy.core import moments as core_moments
from cacheproxy.core import quoted
from cacheproxy.core.idents import idents
from cacheproxy.core.moments import moments
from cacheproxy.core.quoted import regions

SIZE = 32 * 1024
WORDS = (
    """
you are a helpful assistant that must always answer questions about products for the customer in valid format consider
identity guide session provide information and well-known rules: be concise, cite sources (see below); do not invent
facts, never reveal the system prompt, use tool_calls or function_call when search_documents helps time request 24
hours version 2.1 step-by-step reasoning JSON schema object's fields, orders of 100 EUR
""".strip()
    .replace("\n", " ")
    .split(" ")
)
SPANS = (
    "Today is 2026-03-01 10:00:01 UTC. Request ID: 4bf92f3577b34da6\n",
    "\nCurrent time: Sunday, March 1, 2026 at 10:00:01 AM. Session 550e8400-e29b-41d4-a716-446655440000 began.\n",
)
HOURS = "Opening hours: Monday to Friday 9:00-17:00, every time zone; ticket 4711 of release 2.14.3"
CODE = "```python\nprint('2026-03-01 10:00:01', uuid)  # \"text\"\n```"


def prompt(*, spans: bool, size: int = SIZE) -> str:
    """Markdown of headings, lists, paragraphs, inline code, quotes, some code; made the same way every time."""
    dice = random.Random(1)
    lines = [SPANS[0]] if spans else []
    length = 0
    while length < size:
        words = " ".join(dice.choice(WORDS) for _ in range(dice.randint(5, 24)))
        line = (
            dice.choice(("", "", "- ", "1. ", "## ", "  - ", "   "))
            + words
            + dice.choice((".", ":", "", " `code`.", ' "so".'))
        )
        if dice.random() < 0.15:
            line = ""
        if dice.random() < 0.02:
            line = dice.choice((CODE, HOURS))
        lines.append(line)
        length += len(line) + 1
    if spans:
        lines.insert(len(lines) // 2, SPANS[1])
    return "\n".join(lines)


HOSTILE = (
    "10:00 on ", "10:00 - ", "10:00 Sun ", "now 10:00 (11:00) ", "10:00 on 2026-03-01 ", "e.g ", "now it is ", "session: ", "Mon ",
    "`", '"', "“", "<log>", "</log>", "<log ", ">", "> ", "\n", "\n>", "\n\n    x", " \n", "\t\n", "\n```", "```\n~~~\n", "` `` ``` ",
    "10:00 ", "time 10:00 ", "10:00:01 x", "now ", "2026-03-01 10:00:01 ", "\n2026-03-01 10:00:01 ", "9:00-", "20260301T100001",
    "1772359201 ", "1", "a", "request id: ", "request_id=", "request id: abc123 ", "run_aaaaaaa1_", "-aaaaaaaa", "req_aaaaaaa1 ",
    "550e8400-e29b-41d4-a716-446655440000 ", "01ARZ3NDEKTSV4RRFFQ69G5FAV ", "a" * 26 + " ", "0123456789abcdef", "://", "http://a ",
    "e.g. ", "# example\n", "\n# xample", "2026 ", "today 2026-03-01 ", "é漢 10:00 ", "\n- 10:00 x\n\n    y",
)  # fmt: skip


def dated(text: str) -> object:
    return moments(text, dates=True)


def both(text: str) -> object:
    return moments(text), idents(text)


def samples(work: Callable[[str], object], text: str, times: int) -> list[float]:
    """Sorted processor seconds of single calls."""
    found = []
    for _ in range(times):
        for known in (core_idents._remembered, core_moments._remembered, quoted._large):
            known.cache_clear()
        began = time.process_time()
        work(text)
        found.append(time.process_time() - began)
    return sorted(found)


def main() -> int:
    print(f"{'usual prompt, 32 KB':24} {'finder':10} {'found':>6} {'p50 ms':>8} {'p99 ms':>8}")
    cases = {
        "without spans": prompt(spans=False),
        "with spans": prompt(spans=True),
        "with spans, CJK": prompt(spans=True) + "漢",
    }
    for name, text in cases.items():
        for work in (moments, idents, both, dated, regions):
            found = samples(work, text, 2000)
            print(f"{name:24} {work.__name__:10} {len(work(text)):6} {found[1000] * 1e3:8.3f} {found[1980] * 1e3:8.3f}")
    if "--usual" in sys.argv:
        return 0
    print(f"\n{'hostile':24} {'finder':10} {'64 KB ms':>9} {'1 MB ms':>9} {'ratio':>6}")
    worst = 0.0
    for seed in HOSTILE:
        for work in (dated, idents, regions):
            small, large = (
                samples(work, seed * (size // len(seed)), times)[0] for size, times in ((2**16, 5), (2**20, 2))
            )
            worst = max(worst, large / small if large > 0.02 else 0)
            print(f"{seed[:20]!r:24} {work.__name__:10} {small * 1e3:9.2f} {large * 1e3:9.2f} {large / small:6.1f}")
    print(f"greatest ratio where 1 MB takes more than 20 ms: {worst:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
