"""``cacheproxy tune``: labelled pairs -> the threshold for a wanted share of wrong hits, as a user runs it."""

import json

import pytest

from cacheproxy.core import calibration
from cacheproxy.core.labelled import Pair
from cacheproxy.core.likeness import DEFAULT
from cacheproxy.core.model import Identity, Unfit
from cacheproxy.errors import Trouble
from cacheproxy.meaning import tuning
from tests.commands import Commands
from tests.fakes.embedder import Chosen
from tests.meaning.models import MODELS

pytest.importorskip("onnxruntime", reason="the extra `semantic` is not installed")

TINY = {"CACHEPROXY_SEMANTIC__MODEL_PATH": str(MODELS / "tiny-bert")}
SAME = {"a": "how do I change my password", "b": "How do I change my password?", "same": True}
TRAP = {"a": "how do I enable the alarm", "b": "how do I disable the alarm", "same": False}


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    runner = Commands(tmp_path_factory.mktemp("commands"))
    yield runner
    runner.close()


@pytest.fixture
def file(tmp_path):
    def write(*rows, name="pairs.jsonl"):
        path = tmp_path / name
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return str(path)

    return write


async def test_the_threshold_is_found_and_the_trap_is_not_served(commands, file):
    done = await commands.run("tune", file(*[SAME] * 300, *[TRAP] * 50), environment=TINY)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "350 pairs, 300 of them the same question"
    assert lines[1].endswith("(32 dimensions)")
    assert lines[-1].startswith("threshold 0.500: 0 of 300 served are wrong, with 95% confidence no more than 0.99%")


async def test_the_guards_are_those_of_the_configuration(commands, file):
    told = {**TINY, "CACHEPROXY_SEMANTIC__GUARDS": "numbers", "CACHEPROXY_SEMANTIC__VERIFIER": "off"}
    done = await commands.run("tune", file(*[SAME] * 300, *[TRAP] * 50), "--json", environment=told)
    assert json.loads(done.out)["points"][0]["wrong"] == 50
    assert json.loads(done.out)["threshold"] > 0.9


async def test_what_is_printed_as_json_is_a_calibration(commands, file, tmp_path):
    done = await commands.run("tune", file(*[SAME] * 300), "--json", environment=TINY)
    assert (done.code, done.err) == (0, "")
    found = calibration.read(done.out.encode())
    assert (found.embedder.dim, found.threshold_for(0.01)) == (32, 0.5)


async def test_too_few_pairs_are_exit_code_1_with_how_many_would_do(commands, file):
    done = await commands.run("tune", file(SAME), environment=TINY)
    assert done.code == 1
    assert "too few pairs: with no more wrong, 299 served pairs" in done.out.splitlines()[-1]
    done = await commands.run("tune", file(*[SAME] * 5), "--max-error", "0.5", "--confidence", "0.9", environment=TINY)
    assert (done.code, "with 90% confidence" in done.out) == (0, True)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 2: not valid JSON"), ({"a": "x", "b": "y"}, "line 2: `same` is missing"),
        ({"a": "x", "b": "y", "same": "yes"}, "line 2: `same` must be true or false"),
    ],
)  # fmt: skip
async def test_a_bad_line_is_said_in_one_line_with_its_number(commands, file, line, says):
    done = await commands.run("tune", file(SAME, line), environment=TINY)
    assert (done.code, done.out) == (2, "")
    assert done.sentence.endswith(f"pairs.jsonl, {says}")


@pytest.mark.parametrize(
    ("arguments", "more", "says"),
    [
        (["/nowhere/x.jsonl"], {}, "cannot read /nowhere/x.jsonl: No such file"),
        (["FILE"], {"CACHEPROXY_SEMANTIC__MODEL_PATH": "/nowhere"}, "has no config.json"),
        (["FILE"], {"CACHEPROXY_SEMANTIC__URL": "http://127.0.0.1:1"}, "cannot be reached"),
    ],
)
async def test_what_cannot_be_done_is_said_in_one_line(commands, file, arguments, more, says):
    given = [file(SAME) if word == "FILE" else word for word in arguments]
    done = await commands.run("tune", *given, environment={**TINY, **more})
    assert done.code == 2
    assert says in done.err.splitlines()[-1]
    assert done.err.splitlines()[-1].startswith("cacheproxy: ")


@pytest.mark.parametrize(
    "arguments", [[], ["FILE", "--max-error", "0"], ["FILE", "--max-error", "1"], ["FILE", "--confidence", "95"]]
)
async def test_a_wrong_call_is_exit_code_2(commands, file, arguments):
    given = [file(SAME) if word == "FILE" else word for word in arguments]
    done = await commands.run("tune", *given, environment=TINY)
    assert (done.code, done.out) == (2, "")
    assert "Error: " in done.err


def near_miss(similarity, reason="below_threshold", **more):
    return {"time": 1.0, "asked": "5f2a", "stored": "77c0", "similarity": similarity, "reason": reason, **more}


async def test_the_near_miss_log_is_read_without_the_embedder(commands, file):
    """What a guard objected to no threshold would serve; what nobody labelled says nothing."""
    log = file(
        *[near_miss(0.9, same=True)] * 400, *[near_miss(0.95, "unlike:numbers", same=False)] * 50, near_miss(0.91),
        *[near_miss(0.85, same=False)] * 20, name="near.jsonl",
    )  # fmt: skip
    nowhere = {"CACHEPROXY_SEMANTIC__MODEL_PATH": "/nowhere"}
    done = await commands.run("tune", "--from-log", log, "--json", environment=nowhere)
    told = json.loads(done.out)
    assert (done.code, told["threshold"], told["pairs"], told["embedder"]) == (0, 0.855, 470, None)
    assert told["unlabelled"] == 1
    done = await commands.run("tune", "--from-log", log, environment=nowhere)
    assert "1 line of the log has no `same`" in done.out


async def test_a_log_and_pairs_are_counted_together(commands, file):
    log = file(*[near_miss(0.9, same=True)] * 200, name="near.jsonl")
    done = await commands.run("tune", file(*[SAME] * 100), "--from-log", log, "--json", environment=TINY)
    assert (done.code, json.loads(done.out)["pairs"]) == (0, 300)


async def test_a_bad_line_of_the_log_is_named(commands, file):
    log = file(near_miss(0.9), near_miss("x"), name="near.jsonl")
    done = await commands.run("tune", "--from-log", log)
    assert (done.code, done.sentence.endswith("near.jsonl, line 2: `similarity` must be a number")) == (2, True)


# --- what it is made of ----------------------------------------------------------------------------------------------


class Doubts:
    """A verifier that finds some things likely."""

    def __init__(self, probability: float) -> None:
        self.probability = probability
        self.asked: list[tuple[str, str, float]] = []

    async def agreement(self, asked: str, stored: str, similarity: float) -> float:
        self.asked.append((asked, stored, similarity))
        return self.probability


@pytest.mark.parametrize(("probability", "passes"), [(0.7, True), (0.6999, False)])
async def test_the_verifier_is_asked_what_the_guards_pass(probability, passes):
    verifier = Doubts(probability)
    judge = tuning.Judge(DEFAULT, verifier, 0.7)
    assert await judge.agrees(SAME["a"], SAME["b"], 0.97) is passes
    assert verifier.asked == [(SAME["a"], SAME["b"], 0.97)]
    assert not await judge.agrees(TRAP["a"], TRAP["b"], 0.97)
    assert len(verifier.asked) == 1


async def test_each_text_is_embedded_once_and_what_has_no_vector_is_never_served():
    embedder = Counting()
    told: list[int] = []
    pairs = [Pair("a", "a!", True), Pair("a", "long", True), Pair("far", "a", False)]
    found = await tuning.scored(embedder, tuning.Judge(frozenset()), pairs, told.append)
    assert [(one.similarity is None, one.passes) for one in found] == [(False, True), (True, False), (False, False)]
    assert (sorted(embedder.asked), sum(told)) == (["a", "a!", "far", "long"], 4)


async def test_trouble_of_the_embedder_is_not_forgiven():
    with pytest.raises(Trouble):
        await tuning.vectors(Counting(), ["a", "trouble"])


class Counting(Chosen):
    """Remembers what it was asked."""

    identity = Identity("counting", "1", 2)

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def embed(self, text, scope):
        import numpy as np

        self.asked.append(text)
        if text == "trouble":
            raise Trouble("hangs", "timeout")
        if text == "long":
            return Unfit.TOO_LONG
        return np.array([0.0, 1.0] if text == "far" else [1.0, 0.0], np.float32)
