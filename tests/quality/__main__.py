"""``python -m tests.quality [FILE.jsonl …]``: how good answers by meaning are, by labelled sets. ``--write`` writes the
page, the baseline that a test compares, and the shipped calibration."""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from tests.quality import calibrate, page, results, serving
from tests.quality.sets import read, shipped
from tests.rig import ROOT


async def measure(files: list[Path], *, write: bool) -> None:
    try:
        sets = [read(file) for file in files] or shipped()
    except (OSError, ValueError) as error:
        sys.exit(f"tests.quality: {error}")
    model = serving.embedder()
    try:
        if write:
            await calibrate.write(model, results.say)
        found = await results.everything(model, sets, results.say)
        if not files:
            found["frame"] = await results.frame(model)
        for line in page.tables(found):
            print(line)
        if write:
            found["sample"] = await results.sample(model)
            results.BASELINE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
            (ROOT / "docs" / "quality.md").write_text(page.page(found), "utf-8")
    finally:
        await model.close()


parser = argparse.ArgumentParser(prog="python -m tests.quality", description=__doc__)
parser.add_argument("files", nargs="*", type=Path, metavar="FILE.jsonl")
parser.add_argument("--write", action="store_true", help="write docs/quality.md, the baseline and the calibration")
told = parser.parse_args()
if told.files and told.write:
    parser.error("what is written is of the shipped sets alone")
asyncio.run(measure(told.files, write=told.write))
