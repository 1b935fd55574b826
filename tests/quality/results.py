"""All that is measured, as plain data; and the part of it that a test can measure again in seconds."""

import json
import sys
from collections.abc import Sequence

from cacheproxy.meaning.embedder import LocalEmbedder
from tests.quality import frames, pairs, serving
from tests.quality.sets import DATA, Pairs, Stream, read, shipped
from tests.quality.streams import HIT, SEEDS, WRONG, Replay
from tests.rig import ROOT

BASELINE = ROOT / "tests" / "quality" / "baseline.json"
SAMPLE = 600
"""Questions of the banking stream that the test embeds."""


def baseline() -> dict:
    return json.loads(BASELINE.read_text("utf-8"))


async def everything(model: LocalEmbedder, sets: Sequence[Pairs | Stream], say=lambda _: None) -> dict:
    """What each set gives, bare and by default."""
    found: dict = {"threshold": serving.DEFAULTS.threshold, "orders": SEEDS, "pairs": [], "streams": []}
    for one in sets:
        say(f"{one.name} ...")
        if isinstance(one, Stream):
            found["streams"].append(await _stream(model, one))
        else:
            found["pairs"].append(pair_set(one, *await pairs.scored(one, model if one.similarities is None else None)))
    return found


def pair_set(one: Pairs, bare: list, default: list) -> dict:
    threshold = serving.DEFAULTS.threshold
    return {
        "name": one.name,
        "same": sum(pair.same for pair in one.pairs),
        "not_same": sum(not pair.same for pair in one.pairs),
        "bare": pairs.measured(bare, threshold),
        "default": pairs.measured(default, threshold),
        "kinds": pairs.by_kind(one, bare, default, threshold),
    }


async def _stream(model: LocalEmbedder, one: Stream) -> dict:
    vectors = await serving.matrix(model, one.texts)
    threshold = serving.DEFAULTS.threshold
    bare = await Replay(one, vectors, serving.bare()).measured(threshold)
    default = await Replay(one, vectors, serving.default()).measured(threshold)
    return {"name": one.name, "texts": len(one.texts), "bare": bare, "default": default}


async def frame(model: LocalEmbedder) -> dict:
    """Of how many conversations that must not be served what the other was, some are; and of how many that must."""
    texts = read(DATA / "quality" / "banking77.jsonl").texts
    return {
        "conversations": frames.COUNT,
        "earlier_turn": await frames.served(model, frames.earlier_turns(texts)),
        "beyond_the_window": await frames.served(model, frames.beyond_the_window(texts)),
        "same": await frames.served(model, frames.same_turns(texts)),
    }


async def sample(model: LocalEmbedder) -> dict:
    """What a test measures again: pairs by the similarities that are written, and a short stream that is embedded."""
    found: dict = {"pairs": {}, "stream": {}}
    for one in shipped():
        if isinstance(one, Pairs):
            _, default = await pairs.scored(one)
            told = pairs.measured(default, serving.DEFAULTS.threshold)
            found["pairs"][one.name] = {name: told[name]["share"] for name in ("recall", "wrong_share", "traps_served")}
    stream = read(DATA / "quality" / "banking77.jsonl")
    stream = Stream(stream.name, stream.texts[::5][:SAMPLE], stream.intents[::5][:SAMPLE])
    vectors = await serving.matrix(model, stream.texts, None)
    for name, judge in (("bare", serving.bare()), ("default", serving.default())):
        total = (await Replay(stream, vectors, judge).run(serving.DEFAULTS.threshold, 0)).sum(0)
        found["stream"][name] = {"hits": int(total[HIT]), "wrong": int(total[WRONG])}
    return found


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
