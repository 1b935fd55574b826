"""The embedder in this process, on a model that does as it is told."""

import asyncio
import gc
import logging
import subprocess
import sys
import time

import numpy as np
import pytest

from cacheproxy.core.model import Unfit
from cacheproxy.errors import Trouble
from cacheproxy.meaning import embedder as embedders
from cacheproxy.meaning import worker as workers
from cacheproxy.meaning.embedder import LocalEmbedder
from tests.meaning.models import IDENTITY, Told, unit_of
from tests.rig import ROOT, until

SCOPE = b"s" * 16


@pytest.fixture
def model() -> Told:
    return Told()


@pytest.fixture
async def embedder(model):
    made = LocalEmbedder(IDENTITY, lambda: model, window=0.02, memo=8)
    yield made
    model.gate.set()
    await made.close()


async def trouble_of(awaitable) -> Trouble:
    with pytest.raises(Trouble) as raised:
        await awaitable
    return raised.value


def test_importing_it_imports_nothing_heavy():
    seen = "import sys, cacheproxy.meaning.embedder as e; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", seen], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    heavy = {"numpy", "onnxruntime", "tokenizers", "torch", "sentence_transformers", "huggingface_hub", "aiohttp"}
    assert set(done.stdout.split()) & heavy == set()


async def test_a_vector_has_the_length_1_and_cannot_be_changed(embedder):
    vector = await embedder.embed("hello", SCOPE)
    assert vector.shape == (4,)
    assert vector.dtype == np.float32
    np.testing.assert_allclose(vector, unit_of("hello"), rtol=1e-6)
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 1


async def test_everything_is_computed_in_a_thread_of_its_own(embedder, model):
    await embedder.embed("hello", SCOPE)
    assert model.threads == {"embedder"}


async def test_what_was_computed_is_remembered_for_its_scope_alone(embedder, model):
    await embedder.embed("hello", SCOPE)
    seen = len(model.batches)
    first = await embedder.embed("hello", SCOPE)
    assert len(model.batches) == seen
    assert (await embedder.embed("hello", b"t" * 16) == first).all()
    assert len(model.batches) == seen + 1


async def test_the_memo_is_bounded(embedder, model):
    for number in range(20):
        await embedder.embed(f"text {number}", SCOPE)
    seen = len(model.batches)
    await embedder.embed("text 19", SCOPE)
    assert len(model.batches) == seen
    await embedder.embed("text 0", SCOPE)
    assert len(model.batches) == seen + 1


async def test_why_a_text_has_no_vector_is_told(embedder, model):
    await embedder.warm()
    assert await embedder.embed(" ", SCOPE) is Unfit.EMPTY
    assert len(model.batches) == 1


async def test_texts_that_come_at_once_are_computed_together(embedder, model):
    await embedder.warm()
    texts = [f"text {number}" for number in range(32)]
    vectors = await asyncio.gather(*[embedder.embed(text, SCOPE) for text in texts])
    assert model.batches[1:] == [texts]
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(vector, unit_of(text), rtol=1e-6)


async def test_the_same_text_is_computed_once_whoever_asks(embedder, model):
    await embedder.warm()
    vectors = await asyncio.gather(*[embedder.embed("hello", bytes([n])) for n in range(8) for _ in range(3)])
    assert model.batches[1:] == [["hello"]]
    assert all((vector == vectors[0]).all() for vector in vectors)


async def test_a_caller_who_leaves_takes_his_text_out(embedder, model):
    await embedder.warm()
    model.gate.clear()
    first = asyncio.create_task(embedder.embed("first", SCOPE))
    await until(lambda: len(model.batches) == 2)
    leaving = asyncio.create_task(embedder.embed("leaves", SCOPE))
    twice = [asyncio.create_task(embedder.embed("wanted by two", SCOPE)) for _ in range(2)]
    staying = asyncio.create_task(embedder.embed("stays", SCOPE))
    await asyncio.sleep(0)
    leaving.cancel()
    twice[0].cancel()
    await asyncio.wait([leaving, twice[0]])
    model.gate.set()
    await asyncio.gather(first, twice[1], staying)
    assert model.batches[1:] == [["first"], ["wanted by two", "stays"]]


async def test_what_is_under_way_is_kept_though_all_have_left(embedder, model):
    await embedder.warm()
    model.gate.clear()
    leaving = asyncio.create_task(embedder.embed("hello", SCOPE))
    await until(lambda: len(model.batches) == 2)
    leaving.cancel()
    await asyncio.wait([leaving])
    joining = asyncio.create_task(embedder.embed("hello", SCOPE))
    await asyncio.sleep(0)
    model.gate.set()
    await joining
    assert model.batches[1:] == [["hello"]]
    assert "1 remembered" in repr(embedder)


@pytest.mark.parametrize(
    "given",
    [
        np.array([1, 2, np.nan, 4], np.float32), np.array([1, np.inf, 3, 4], np.float32), np.zeros(4, np.float32),
        np.ones(5, np.float32), np.ones(3, np.float32), np.ones((1, 4), np.float32), np.ones(4, np.int64), np.array([]),
        [1.0, 2.0, 3.0, 4.0], None.__class__,
    ],
    ids=["NaN", "infinity", "zero", "longer", "shorter", "a row", "integers", "empty", "a list", "something else"],
)  # fmt: skip
async def test_a_vector_that_cannot_be_one_is_trouble_for_its_caller_alone(embedder, model, given):
    """B70: zero, NaN, wrong dimension, empty."""
    await embedder.warm()
    model.given["bad"] = given
    good, bad = await asyncio.gather(
        embedder.embed("good", SCOPE), trouble_of(embedder.embed("bad", SCOPE)),
    )  # fmt: skip
    assert bad.kind == "vector"
    np.testing.assert_allclose(good, unit_of("good"), rtol=1e-6)
    model.given.clear()
    np.testing.assert_allclose(await embedder.embed("bad", SCOPE), unit_of("bad"), rtol=1e-6)


async def test_a_batch_that_fails_fails_its_own_callers(embedder, model, caplog):
    await embedder.warm()
    model.given["my secret"] = RuntimeError("my secret is bad")
    both = await asyncio.gather(
        trouble_of(embedder.embed("my secret", SCOPE)), trouble_of(embedder.embed("with it", SCOPE)),
    )  # fmt: skip
    assert [trouble.kind for trouble in both] == ["fault", "fault"]
    assert both[0] is not both[1]
    await embedder.embed("after", SCOPE)
    assert "could not be embedded" in caplog.text
    assert "secret" not in caplog.text + str(both)


async def test_as_many_vectors_as_texts(embedder, model, monkeypatch):
    await embedder.warm()
    monkeypatch.setattr(model, "vectors", lambda pieces: [np.ones(4, np.float32)] * (len(pieces) + 1))
    assert (await trouble_of(embedder.embed("hello", SCOPE))).kind == "fault"


async def test_what_hangs_holds_up_no_one_who_does_not_wait(embedder, model):
    """B73: each caller leaves at his own deadline; nothing is left of him, and nothing hangs at the end."""
    await embedder.warm()
    model.gate.clear()
    for number in range(5):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(embedder.embed(f"text {number}", SCOPE), 0.01)
    assert "0 waiting, 1 under way" in repr(embedder)
    await asyncio.wait_for(embedder.close(), 5)
    assert (await trouble_of(embedder.embed("after", SCOPE))).kind == "closed"


async def test_after_the_end_nothing_is_loaded(model):
    made = LocalEmbedder(IDENTITY, lambda: model)
    await made.close()
    assert (await asyncio.wait_for(trouble_of(made.embed("hello", SCOPE)), 5)).kind == "closed"
    assert model.batches == []


async def test_who_waits_at_the_end_is_told(embedder, model):
    await embedder.warm()
    model.gate.clear()
    waiting = [asyncio.create_task(trouble_of(embedder.embed(f"text {n}", SCOPE))) for n in range(40)]
    await until(lambda: len(model.batches) == 2)
    await embedder.close()
    assert {trouble.kind for trouble in await asyncio.gather(*waiting)} == {"closed"}


async def test_it_is_loaded_once_for_all_who_come_meanwhile(model):
    loads = []
    made = LocalEmbedder(IDENTITY, lambda: loads.append(1) or model)
    await asyncio.gather(*[made.embed(f"text {n}", SCOPE) for n in range(5)], made.warm())
    assert loads == [1]
    await made.close()


async def test_a_caller_who_leaves_while_it_is_loaded_disturbs_nobody(model):
    model.gate.clear()
    made = LocalEmbedder(IDENTITY, lambda: model)
    leaving, staying = (asyncio.create_task(made.embed(text, SCOPE)) for text in ("leaves", "stays"))
    await until(lambda: model.batches)
    leaving.cancel()
    await asyncio.wait([leaving])
    model.gate.set()
    await staying
    assert [text for batch in model.batches[1:] for text in batch] == ["stays"]
    await made.close()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(Trouble("no such file", "missing"), "missing"), (ImportError("a secret"), "fault"), (MemoryError(), "fault")],
)
async def test_what_cannot_be_loaded_is_trouble_and_tried_again(model, fault, kind, caplog):
    faults = [fault, fault]

    def load() -> Told:
        if faults:
            raise faults.pop()
        return model

    made = LocalEmbedder(IDENTITY, load)
    assert (await trouble_of(made.warm())).kind == kind
    assert (await trouble_of(made.embed("hello", SCOPE))).kind == kind
    await made.embed("hello", SCOPE)
    assert "secret" not in caplog.text
    await made.close()


async def test_a_model_whose_first_vector_is_none_is_trouble_at_the_start(model):
    model.given[embedders._WARM] = np.full(4, np.nan, np.float32)
    made = LocalEmbedder(IDENTITY, lambda: model)
    assert (await trouble_of(made.warm())).kind == "vector"
    await made.close()


async def test_a_model_that_is_not_loaded_in_time_is_trouble_at_the_start(model, monkeypatch):
    monkeypatch.setattr(embedders, "LOAD_SECONDS", 0.01)
    model.gate.clear()
    made = LocalEmbedder(IDENTITY, lambda: model)
    assert (await trouble_of(made.warm())).kind == "timeout"
    await made.close()
    model.gate.set()


async def test_a_failure_that_nobody_waited_for_is_not_complained_of(model, caplog):
    model.gate.clear()
    model.given[embedders._WARM] = Trouble("bad", "damaged")
    made = LocalEmbedder(IDENTITY, lambda: model)
    leaving = asyncio.create_task(made.embed("hello", SCOPE))
    await until(lambda: model.batches)
    leaving.cancel()
    await asyncio.wait([leaving])
    model.gate.set()
    await until(lambda: made._loading is None)
    del leaving
    gc.collect()
    await asyncio.sleep(0)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    await made.close()


async def test_a_loop_that_has_ended_is_no_trouble_for_the_thread(model):
    def short() -> None:
        async def ask() -> None:
            waiting = asyncio.create_task(made.embed("hello", SCOPE))
            await until(lambda: model.batches)
            waiting.cancel()

        asyncio.run(ask())

    made = LocalEmbedder(IDENTITY, lambda: model)
    model.gate.clear()
    await asyncio.to_thread(short)
    model.gate.set()
    thread = made._worker._thread
    await made.close()
    await until(lambda: not thread.is_alive())


async def test_a_loop_that_is_never_idle_does_not_let_it_starve(embedder):
    """Without way being made for it the thread gets no turn for seconds."""
    await embedder.warm()
    asked = asyncio.create_task(embedder.embed("hello", SCOPE))

    async def spin() -> None:
        while not asked.done():
            began = time.perf_counter()
            while time.perf_counter() - began < 0.0001:
                sum(range(50))
            await asyncio.sleep(0)

    await asyncio.wait_for(asyncio.gather(*[spin() for _ in range(4)]), 20)
    assert asked.result().shape == (4,)
    await until(lambda: embedder._worker._watched is None)


async def test_way_is_made_while_work_does_not_end_and_less_and_less(embedder, model, monkeypatch):
    gaps, waits, loop = [], [], asyncio.get_running_loop()
    await embedder.warm()
    await until(lambda: embedder._worker._watched is None)
    later = loop.call_later

    def call_later(seconds, callback, *told):
        if callback == embedder._worker._make_way:
            waits.append(seconds)
            seconds = 0
        return later(seconds, callback, *told)

    monkeypatch.setattr(workers.time, "sleep", gaps.append)
    monkeypatch.setattr(loop, "call_later", call_later)
    model.gate.clear()
    asked = asyncio.create_task(embedder.embed("hello", SCOPE))
    await until(lambda: len(gaps) > 250)
    model.gate.set()
    await asked
    await until(lambda: embedder._worker._watched is None)
    seen = len(waits)
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(waits) == seen
    assert set(gaps) == {workers.GAP}
    assert waits[0] == workers.PATIENCE
    assert waits[1] == workers.AGAIN < waits[150] < waits[250]


async def test_half_a_character_is_a_text_too(embedder):
    assert (await embedder.embed("a\ud800", SCOPE)).shape == (4,)
