"""The log of near misses: what is noted, and that no words are in it unless they may be."""

import json

import numpy as np
import pytest

from cacheproxy.core.agreement import Agreement
from cacheproxy.engine.asked import Asked
from cacheproxy.engine.nearly import BELOW_THRESHOLD, NearMisses
from tests.engine.fakes import Hands

ASKED = Asked("How do I reset my password?", b"p" * 32, np.zeros(4, np.float32))
STORED = "How may I reset a passw\u00f6rd?"


@pytest.fixture
def lines() -> list[dict]:
    return []


@pytest.fixture
def log(lines):
    def make(*, texts: bool = False, secret: bytes = b"s" * 32) -> NearMisses:
        def write(line: bytes) -> bool:
            assert line.endswith(b"\n")
            assert line.count(b"\n") == 1
            lines.append(json.loads(line))
            return True

        return NearMisses(write, Hands(), secret, texts=texts)

    return make


def test_a_line_tells_what_was_near_and_why_it_was_not_served(log, lines):
    log(texts=True).note(ASKED, STORED, 0.9151, 0.92, BELOW_THRESHOLD)
    assert lines == [{
        "time": 1_000_000.0, "similarity": 0.9151, "threshold": 0.92, "reason": "below_threshold",
        "asked": ASKED.text, "stored": STORED, "hashed": False, "partition": "70" * 8,
    }]  # fmt: skip


def test_words_are_hashed_unless_they_may_be_written(log, lines):
    one, other = log(), log(secret=b"t" * 32)
    one.note(ASKED, STORED, 0.95, 0.92, "unlike:numbers")
    other.note(ASKED, STORED, 0.95, 0.92, "unlike:numbers")
    one.note(ASKED, ASKED.text, 0.95, 0.92, "unlike:numbers")
    first, second, third = lines
    assert first["hashed"]
    assert "assw" not in json.dumps(lines)
    assert len(first["asked"]) == len(first["stored"]) == 32
    assert first["asked"] != first["stored"]
    assert first["asked"] != second["asked"], "nobody without the secret can tell what was asked"
    assert third["asked"] == third["stored"] == first["asked"], "the same question has the same hash"
    one.rekey(b"t" * 32)
    one.note(ASKED, STORED, 0.95, 0.92, "verifier")
    assert lines[-1]["asked"] == second["asked"]


@pytest.mark.parametrize(("similarity", "noted"), [(0.8699, 0), (0.8701, 1), (0.99, 1), (None, 0)])
def test_what_is_too_far_is_not_noted(log, lines, similarity, noted):
    log().note(ASKED, STORED, similarity, 0.92, BELOW_THRESHOLD)
    assert len(lines) == noted


@pytest.mark.parametrize(
    ("verdict", "same"), [(Agreement.AGREE, [True]), (Agreement.DIFFER, [False]), (Agreement.UNKNOWN, [])]
)
def test_a_sample_is_a_labelled_pair(log, lines, verdict, same):
    log().sampled(ASKED, STORED, 0.95, verdict)
    assert [line["same"] for line in lines] == same
    assert all(line["reason"] == "sampled" for line in lines)


def test_any_text_can_be_written_and_long_ones_are_cut(log, lines):
    for texts in (True, False):
        log(texts=texts).note(ASKED, "\ud800\n\u2028" + "x" * 10_000, 0.95, 0.92, "unlike:code")
    assert [len(line["stored"]) for line in lines] == [4096, 32]
    assert lines[0]["stored"].startswith("?\n\u2028x")
