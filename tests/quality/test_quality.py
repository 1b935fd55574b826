"""How good answers by meaning are does not get worse unnoticed: a part of the published figures, measured again.

If this fails because they got better, or worse for a good reason: ``make quality ARGS=--write``.
"""

import json

import pytest

from tests.quality import frames, page, pairs, results, serving, shares
from tests.quality.sets import DATA, Pairs, Stream, read, shipped
from tests.rig import ROOT

pytest.importorskip("onnxruntime", reason="the extra `semantic` is not installed")

LESS_RECALL, MORE_WRONG = 0.01, 0.005
"""How far shares may move away from the baseline to the worse."""
FEWER_HITS, MORE_ERRORS = 3, 1
"""The same for the short stream."""
STREAM_SHIFT, SAME_SHIFT = 0.02, 0.002
"""How far the page may be from what is measured, whichever way; of similarities, how exactly they are the same."""


@pytest.fixture(scope="module")
def baseline():
    return results.baseline()


@pytest.fixture
async def model():
    model = serving.embedder(threads=1)
    yield model
    await model.close()


def worse(now: dict, before: dict) -> list[str]:
    """What has become worse than the baseline of `results.sample`."""
    found = []
    for name, told in before["pairs"].items():
        for what, share in told.items():
            fall = (share or 0) - (now["pairs"][name][what] or 0)
            if fall > LESS_RECALL if what == "recall" else -fall > MORE_WRONG:
                found.append(f"{name}: {what} {share} -> {now['pairs'][name][what]}")
    for name, told in before["stream"].items():
        if told["hits"] - now["stream"][name]["hits"] > FEWER_HITS:
            found.append(f"stream, {name}: hits {told['hits']} -> {now['stream'][name]['hits']}")
        if now["stream"][name]["wrong"] - told["wrong"] > MORE_ERRORS:
            found.append(f"stream, {name}: wrong {told['wrong']} -> {now['stream'][name]['wrong']}")
    return found


async def test_nothing_is_worse_than_the_baseline(model, baseline):
    assert worse(await results.sample(model), baseline["sample"]) == []


def test_what_is_worse_is_found(baseline):
    before = baseline["sample"]
    assert worse(before, before) == []
    for at, change, count in [
        (("pairs", "gptcache_mock", "recall"), -0.02, 1), (("pairs", "gptcache_mock", "recall"), 0.02, 0),
        (("pairs", "pawsx", "wrong_share"), 0.02, 1), (("pairs", "adversarial", "traps_served"), 0.015, 1),
        (("stream", "default", "hits"), -9, 1), (("stream", "default", "wrong"), 2, 1),
    ]:  # fmt: skip
        now = json.loads(json.dumps(before))
        now[at[0]][at[1]][at[2]] += change
        assert len(worse(now, before)) == count, at


async def test_what_is_published_is_what_is_measured(baseline):
    """The page is the baseline's, and its figures of pairs are those of today."""
    assert (ROOT / "docs" / "quality.md").read_text("utf-8") == page.page(baseline)
    known = {row["name"]: row for row in baseline["pairs"]}
    for one in shipped():
        if isinstance(one, Pairs):
            now = results.pair_set(one, *await pairs.scored(one))
            assert (now["same"], now["not_same"]) == (known[one.name]["same"], known[one.name]["not_same"]), one.name
            for side in ("bare", "default"):
                for what in ("recall", "wrong_share"):
                    said, is_now = (row[side][what]["share"] or 0 for row in (known[one.name], now))
                    assert abs(said - is_now) <= STREAM_SHIFT, (one.name, side, what, said, is_now)


async def test_the_similarities_in_the_sets_are_those_of_the_embedder(model):
    for name in ("likeness/adversarial.jsonl", "quality/gptcache_mock.jsonl", "quality/pawsx.jsonl"):
        one = read(DATA / name)
        some = Pairs(one.name, one.pairs[:: len(one.pairs) // 12], one.similarities[:: len(one.pairs) // 12])
        bare, _ = await pairs.scored(some, model)
        for row, said in zip(bare, some.similarities, strict=True):
            assert row.similarity == (said if said is None else pytest.approx(said, abs=SAME_SHIFT)), name


async def test_the_frame_of_a_question_is_never_passed_over(model):
    """Neither another earlier turn nor what is beyond the window; the same conversation again is found."""
    texts = read(DATA / "quality" / "banking77.jsonl").texts[:70]
    assert await frames.served(model, frames.earlier_turns(texts)[:10]) == 0
    assert await frames.served(model, frames.beyond_the_window(texts)[:10]) == 0
    assert await frames.served(model, frames.same_turns(texts)[:10]) == 10


async def test_a_stream_of_its_own(tmp_path, model):
    """The nearest that is near enough answers, what is answered is not learnt, what has no intent is left out."""
    file = tmp_path / "own.jsonl"
    rows = [("How do I reset my password?", "a")] * 3 + [
        ("How do I reset my password?", "b"),
        ("hi", "c"),
        ("hi", "c"),
        ("hi", "oos"),
    ]
    file.write_text("\n".join(json.dumps({"text": text, "intent": intent}) for text, intent in rows))
    found = await results.everything(model, [read(file)])
    (row,) = found["streams"]
    assert row["bare"]["hits"]["share"] == pytest.approx(4 / 6, abs=1e-4)  # of each two texts the first is a miss
    assert 0 < row["bare"]["errors"]["share"] < 1
    assert any("| own | 6 |" in line for line in page.tables(found))


@pytest.mark.parametrize("line", ['{"text": "x", "intent": 1}', '{"text": 1, "intent": "x"}'])
def test_a_stream_with_a_bad_line_is_refused(tmp_path, line):
    file = tmp_path / "own.jsonl"
    file.write_text('{"text": "x", "intent": "y"}\n' + line)
    with pytest.raises(ValueError, match="line 2: `text` and `intent`"):
        read(file)


def test_the_shipped_sets_are_there():
    sizes = {one.name: len(one.texts) if isinstance(one, Stream) else len(one.pairs) for one in shipped()}
    wanted = {"banking77": 3080, "clinc150": 4500, "gptcache_mock": 999, "adversarial": 100, "pawsx": 900}
    assert wanted.items() <= sizes.items()


def test_an_interval_has_the_share_in_it():
    import numpy as np

    columns = np.array([[1, 1]] * 30 + [[0, 1]] * 70 + [[0, 0]] * 100, float)
    told = shares.ratio(columns, 0, 1)
    assert told == shares.ratio(columns, 0, 1)
    assert told["share"] == 0.3
    assert 0.18 < told["low"] < 0.26
    assert 0.34 < told["high"] < 0.42
    nothing = shares.ratio(np.array([[0, 1]] * 50, float), 0, 1)
    assert (nothing["low"], round(nothing["high"], 3)) == (0.0, 0.071)
    assert shares.ratio(np.zeros((5, 2)), 0, 1)["share"] is None
