"""What large events cost: processor seconds of the recorder and of the sieve for streams of n and 2n bytes.

    python -m tests.bench.streams

Linear work has a ratio of about 2; anything that looks at what it holds again and again has 4.
"""

import json
import random
import sys
import time
from collections.abc import Callable

from cacheproxy.core import usage
from cacheproxy.core.model import Answer, Endpoint
from cacheproxy.core.recording import recorder
from tests.core import shapes, streams
from tests.core.streams import Block, Writer

MEBIBYTE = 2**20


def one_line(size: int) -> bytes:
    """One event of one line."""
    texts = ["é漢😀\r\n data: " * (size // 21)]
    return _written(texts).raw


def many_lines(size: int) -> bytes:
    """One event whose data are thousands of lines."""
    writer = _written([])
    lines = [b"data:%b" % part for part in json.dumps({"a": [1] * (size // 8)}, indent=0).encode().split(b"\n")]
    writer.blocks.insert(1, Block(b"\r\n".join(lines) + b"\r\n\r\n", tuple(lines)))
    return writer.raw


def many_events(size: int) -> bytes:
    """Thousands of events."""
    return _written(["word"] * (size // 170)).raw


def null_usage(size: int) -> bytes:
    """One event of which the sieve takes ``usage: null`` out."""
    documents = streams.documents(Endpoint.CHAT, random.Random(1), ["é漢😀\r\n data: " * (size // 21)])
    return Writer(random.Random(1), plain=True).stream([{**d, "usage": None} for d in documents]).raw


def _written(texts: list[str]) -> Writer:
    dice = random.Random(1)
    return Writer(dice, plain=True).stream(streams.documents(Endpoint.CHAT, dice, texts))


def recorded(cuts: list[bytes]) -> None:
    taking = recorder(shapes.ask(stream=True), "text/event-stream")
    for piece in cuts:
        taking.feed(piece)
    assert isinstance(taking.finish(), Answer)


def sieved(cuts: list[bytes]) -> None:
    sieve = usage.Filter()
    assert sum(len(sieve.feed(piece)) for piece in cuts)


def seconds(work: Callable[[list[bytes]], None], cuts: list[bytes]) -> float:
    """The best of three."""
    found = []
    for _ in range(3):
        began = time.process_time()
        work(cuts)
        found.append(time.process_time() - began)
    return min(found)


def main() -> int:
    print(f"{'stream':12} {'cut':14} {'work':9} {'n':>9} {'2n':>9} {'ratio':>6}")
    for make in (one_line, many_lines, many_events, null_usage):
        for name, size, step in (
            ("400 pieces", 5 * MEBIBYTE, 0), ("64 KiB", 5 * MEBIBYTE, 65_536), ("bytewise", MEBIBYTE // 2, 1),
        ):  # fmt: skip
            for work in (recorded, sieved):
                taken = []
                for times in (1, 2):
                    raw = make(size * times)
                    cuts = (
                        [raw[i : i + step] for i in range(0, len(raw), step)] if step
                        else streams.cut(raw, random.Random(2), 400 * times)
                    )  # fmt: skip
                    taken.append(seconds(work, cuts))
                ratio = taken[1] / taken[0]
                print(f"{make.__name__:12} {name:14} {work.__name__:9} {taken[0]:8.3f}s {taken[1]:8.3f}s {ratio:6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
