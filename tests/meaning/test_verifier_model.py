"""A model as verifier: what is asked of it, what it may say, and what its trouble costs. A module in place of the real
one says what it is called with; the real one is tried where it is installed."""

import asyncio
import sys
import threading
import types
from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import pytest

from cacheproxy.errors import Trouble
from cacheproxy.meaning.verifier_model import ModelVerifier, open_verifier

SECRET = "what is my balance, says Ann"


class Scripted:
    """A `Scorer` that says what it is told to."""

    def __init__(self, *scores: float) -> None:
        self.given: object = list(scores)
        self.asked: list[tuple[str, str]] = []
        self.threads: set[int] = set()

    def scores(self, pairs):
        self.asked += pairs
        self.threads.add(threading.get_ident())
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given


@pytest.fixture
async def opened():
    verifiers = []

    def make(load):
        verifier = ModelVerifier("m", load)
        verifiers.append(verifier)
        return verifier

    yield make
    for verifier in verifiers:
        await verifier.close()


async def test_both_ways_round_are_asked_and_the_worse_counts(opened):
    scorer = Scripted(0.9, 0.4)
    assert await opened(lambda: scorer).agreement("a", "b", 0.95) == 0.4
    assert scorer.asked == [("a", "b"), ("b", "a")]


async def test_the_loop_is_not_held_up_and_the_model_is_loaded_once(opened):
    scorer, loads = Scripted(1.0, 1.0), []

    def load():
        loads.append(threading.get_ident())
        return scorer

    verifier = opened(load)
    await verifier.warm()
    await asyncio.gather(*(verifier.agreement("a", str(n), 0.9) for n in range(5)))
    assert len(loads) == 1
    assert scorer.threads == {loads[0]}
    assert threading.get_ident() not in scorer.threads


async def test_what_could_not_be_loaded_is_tried_again(opened):
    told: list[object] = [Trouble("not there", "missing"), OSError(SECRET), Scripted(0.7, 0.8)]

    def load():
        said = told.pop(0)
        if isinstance(said, BaseException):
            raise said
        return said

    verifier = opened(load)
    for kind in ("missing", "fault"):
        with pytest.raises(Trouble) as raised:
            await verifier.warm()
        assert raised.value.kind == kind
        assert SECRET not in str(raised.value)
    assert await verifier.agreement("a", "b", 0.9) == 0.7


@pytest.mark.parametrize("scores", [(0.5,), (0.5, 1.5), (-0.1, 0.5), (float("nan"), 0.5), (0.5, float("nan")), ()])
async def test_what_is_no_probability_is_trouble(opened, scores):
    with pytest.raises(Trouble) as raised:
        await opened(lambda: Scripted(*scores)).agreement("a", "b", 0.9)
    assert raised.value.kind == "damaged"


async def test_a_fault_says_where_and_not_what(opened, caplog):
    scorer = Scripted()
    scorer.given = ValueError(SECRET)
    with pytest.raises(Trouble) as raised:
        await opened(lambda: scorer).agreement(SECRET, "b", 0.9)
    assert raised.value.kind == "fault"
    assert SECRET not in str(raised.value) + caplog.text
    assert "verifier_model" in caplog.text


class Config:
    def __init__(self, *labels: str) -> None:
        self.id2label = dict(enumerate(labels))


class Encoder:
    """What of a `CrossEncoder` is used."""

    made: ClassVar[list["Encoder"]] = []
    labels: tuple[str, ...] = ("LABEL_0",)
    logits: object = ()
    longest = 8

    def __init__(self, name: str, *, device: str, local_files_only: bool) -> None:
        if name == "absent":
            raise OSError("no such place")
        self.told = (name, device, local_files_only)
        self.config = Config(*self.labels)
        self.max_length = self.longest
        self.predicted: list[list[tuple[str, str]]] = []
        Encoder.made.append(self)

    def tokenizer(self, one: str, other: str, *, truncation: bool):
        assert not truncation
        return {"input_ids": [*one.split(), *other.split()]}

    def predict(self, pairs, *, activation_fn, show_progress_bar):
        assert activation_fn(7) == 7
        assert not show_progress_bar
        self.predicted.append(pairs)
        return np.array(self.logits)


@pytest.fixture
def encoder(monkeypatch):
    module = types.ModuleType("sentence_transformers")
    module.CrossEncoder = Encoder
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setattr(Encoder, "made", [])
    return monkeypatch


def says(encoder, labels, logits, longest=8) -> None:
    encoder.setattr(Encoder, "labels", labels)
    encoder.setattr(Encoder, "logits", logits)
    encoder.setattr(Encoder, "longest", longest)


@pytest.mark.parametrize(
    ("labels", "logits", "probability"),
    [
        (("LABEL_0",), [0.0, 2.0], 0.5),
        (("LABEL_0",), [[3.0], [2.0]], 1 / (1 + np.exp(-2.0))),
        (("contradiction", "ENTAILMENT", "neutral"), [[0, 0, 0], [1, 5, 1]], 1 / 3),
        (("entailment", "not_entailment"), [[4.0, 4.0], [9.0, 0.0]], 0.5),
        (("LABEL_0",), [800.0, -800.0], 0.0),
    ],
)
async def test_the_probability_of_the_label_for_the_same(encoder, labels, logits, probability):
    says(encoder, labels, logits)
    verifier = open_verifier("some/model")
    try:
        assert await verifier.agreement("a b", "c", 0.9) == pytest.approx(probability)
    finally:
        await verifier.close()
    assert [made.told for made in Encoder.made] == [("some/model", "cpu", True)]
    assert Encoder.made[0].predicted == [[("a b", "c"), ("c", "a b")]]


async def test_what_is_too_long_is_not_cut_but_refused(encoder):
    says(encoder, ("LABEL_0",), [9.0, 9.0], longest=3)
    verifier = open_verifier("m", download=True)
    try:
        assert await verifier.agreement("a b", "c d", 0.99) == 0.0
        assert Encoder.made[0].predicted == []
        assert await verifier.agreement("a b", "c", 0.99) > 0.9
    finally:
        await verifier.close()
    assert Encoder.made[0].told[2] is False


@pytest.mark.parametrize(("name", "kind"), [("absent", "missing"), ("m", "damaged")])
async def test_a_model_that_is_absent_or_says_nothing_of_sameness_is_trouble(encoder, name, kind):
    says(encoder, ("LABEL_0", "LABEL_1"), [[1.0, 2.0]] * 2)
    verifier = open_verifier(name)
    try:
        with pytest.raises(Trouble) as raised:
            await verifier.warm()
    finally:
        await verifier.close()
    assert raised.value.kind == kind


async def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    verifier = open_verifier("m")
    try:
        with pytest.raises(Trouble, match="transformers") as raised:
            await verifier.warm()
    finally:
        await verifier.close()
    assert raised.value.kind == "missing"


VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] how do i reset my your password ? can"


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="sentence-transformers is not installed")
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("labels", [1, 3])
async def test_a_real_model(tmp_path, labels):
    """A tiny model with random weights: its score is what the library itself gives."""
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY.split()))
    names = {0: "contradiction", 1: "entailment", 2: "neutral"} if labels == 3 else {0: "LABEL_0"}
    config = BertConfig(
        vocab_size=len(VOCABULARY.split()), hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32, num_labels=labels, id2label=names,
        label2id={name: place for place, name in names.items()},
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(tmp_path / "model")
    BertTokenizer(str(tmp_path / "vocab.txt"), model_max_length=32).save_pretrained(tmp_path / "model")
    verifier = open_verifier(str(tmp_path / "model"))
    try:
        await verifier.warm()
        found = await verifier.agreement("how do i reset my password ?", "how can i reset your password ?", 0.9)
        again = await verifier.agreement("how can i reset your password ?", "how do i reset my password ?", 0.9)
        assert await verifier.agreement("how " * 40, "how", 0.9) == 0.0
    finally:
        await verifier.close()
    assert 0 < found < 1
    assert found == pytest.approx(again, abs=1e-5)
