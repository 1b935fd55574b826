"""Writes cacheproxy/core/calibrated.py: what the default embedder serves from each threshold on, with the default guards,
in the shipped streams. Streams, since what their texts bring together is what traffic brings together; pairs that were
written as traps say nothing of how often those are asked."""

from cacheproxy.meaning.embedder import LocalEmbedder
from tests.quality import serving
from tests.quality.sets import DATA, STREAMS, read
from tests.quality.streams import HIT, WRONG, Replay
from tests.rig import ROOT

FILE = ROOT / "cacheproxy" / "core" / "calibrated.py"
THRESHOLDS = [number / 100 for number in range(85, 100)]


async def write(model: LocalEmbedder, say=lambda _: None) -> None:
    counts = {threshold: [0, 0] for threshold in THRESHOLDS}
    for name in STREAMS:
        stream = read(DATA / name)
        say(f"calibration by {stream.name} ...")
        replay = Replay(stream, await serving.matrix(model, stream.texts), serving.default())
        for threshold, both in counts.items():
            total = (await replay.run(threshold, 0)).sum(0)
            both[0] += int(total[HIT])
            both[1] += int(total[WRONG])
    FILE.write_text(source(model, counts), "utf-8")


def source(model: LocalEmbedder, counts: dict[float, list[int]]) -> str:
    told = model.identity
    rows = "".join(f"    ({threshold}, {served}, {wrong}),\n" for threshold, (served, wrong) in counts.items())
    return (
        '"""What the default embedder serves from each threshold on: (threshold, served, wrong). Written by\n'
        '``python -m tests.quality --write``."""\n\n'
        f'NAME, REVISION, DIM = "{told.name}", "{told.revision}", {told.dim}\n\n'
        f"POINTS: tuple[tuple[float, int, int], ...] = (\n{rows})\n"
    )
