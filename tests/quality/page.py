"""The tables that are printed and published."""

from collections.abc import Iterable

PAGE = """\
# How good answers by meaning are

<!-- Written by `python -m tests.quality --write`; do not edit. -->

`make quality` measures this page again; `python -m tests.quality FILE.jsonl` measures other sets, in either form:
pairs (`a`, `b`, `same`) or a stream (`text`, `intent`). It runs the very code that serves: embedder, index, guards,
verifier. *Bare* is the cosine similarity of all-MiniLM-L6-v2 alone, at the same threshold.

"""

NOTES = """\
The sets and their origin are listed in `tests/data/quality/README.md` and `tests/data/likeness/README.md`. The
guards were made with *adversarial*, *own* and *more* in sight, and the classifier learnt from all sets named here but for
the intents of the streams: they show that nothing was lost, not how good either is with what it has not seen. Of new
traps in these kinds that were written after, between 1 and 3 in 100 were served.

An answer is never better than the question that it is found by. Measure with your own traffic:
`cacheproxy tune FILE.jsonl` tells what each threshold would serve of labelled pairs, and which one keeps the share of
wrong hits within what you want.
"""


def page(found: dict) -> str:
    """docs/quality.md."""
    return PAGE + "\n".join(tables(found)) + "\n" + NOTES


def tables(found: dict) -> Iterable[str]:
    """Markdown, which can be read as it is."""
    if found["pairs"]:
        yield f"## Pairs, at {found['threshold']}\n"
        yield "Recall: the share of pairs with one answer that are served. Wrong: the share of what is served that is not"
        yield "the same question. In brackets the 95 % interval.\n"
        yield from _table(
            ["set", "same / not", "recall, bare", "wrong, bare", "recall", "wrong", "wrong where a tenth is served: bare",
             "by default"],
            [_pair_row(row) for row in found["pairs"]],
        )  # fmt: skip
    for row in found["pairs"]:
        if row["kinds"]:
            yield f"### {row['name']}, by kind\n"
            yield from _table(
                ["kind", "one answer serves both", "pairs", "served, bare", "served"],
                [[k["kind"], "yes" if k["same"] else "no", k["pairs"], k["bare"], k["default"]] for k in row["kinds"]],
            )
    if found["streams"]:
        yield f"## Streams, at {found['threshold']}\n"
        yield "Texts come in a random order, and each is looked for among the earlier ones. An error is a hit whose intent"
        yield f"is another. Over {found['orders']} orders.\n"
        yield from _table(
            [
                "stream",
                "looks",
                "hits, bare",
                "errors, bare",
                "hits",
                "errors",
                "error at 10 % hits: bare",
                "by default",
            ],
            [_stream_row(row) for row in found["streams"]],
        )
    if frame := found.get("frame"):
        yield "## What stands around a question\n"
        yield f"{frame['conversations']} conversations each, without guards; the same conversation again is found"
        yield f"{frame['same']} times.\n"
        yield from _table(
            ["only this differs", "served"],
            [["an earlier turn", frame["earlier_turn"]],
             ["the question, beyond the embedder's window", frame["beyond_the_window"]]],
        )  # fmt: skip


def _pair_row(row: dict) -> list:
    sides = [_share(row[side][what]) for side in ("bare", "default") for what in ("recall", "wrong_share")]
    tens = [_ten(row[side]["at_ten"]) for side in ("bare", "default")]
    return [row["name"], f"{row['same']} / {row['not_same']}", *sides, *tens]


def _stream_row(row: dict) -> list:
    sides = [_share(row[side][what]) for side in ("bare", "default") for what in ("hits", "errors")]
    return [row["name"], f"{row['texts']:,}", *sides, *(_ten(row[side]["at_ten"]) for side in ("bare", "default"))]


def _share(told: dict) -> str:
    if told["share"] is None:
        return "none served"
    return f"{told['share']:.1%} ({told['low']:.1%}–{told['high']:.1%})"


def _ten(told: dict | None) -> str:
    return "–" if told is None else f"{told['error']:.1%} (at {told['threshold']:.3f})"


def _table(heads: list[str], rows: Iterable[list]) -> Iterable[str]:
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"
    yield ""
