"""The embedding model at the start of a proxy: on by itself, loaded in the background, and no condition for anything."""

import json
import threading

import pytest

from cacheproxy.errors import ConfigurationError, Trouble
from cacheproxy.settings import resolve
from cacheproxy.wiring import embedding, meaning
from tests.commands import Commands
from tests.fakes.embedder import Chosen
from tests.meaning.models import MODELS
from tests.rig import Client, until

TINY = str(MODELS / "tiny-bert")


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    runner = Commands(tmp_path_factory.mktemp("commands"))
    yield runner
    runner.close()


def settings(**told):
    flags = {f"semantic.{name}": value for name, value in told.items()}
    return resolve({"upstreams": ["http://127.0.0.1:1"], **flags}, None, {}).settings


def hide(monkeypatch, *packages):
    found = embedding.find_spec
    monkeypatch.setattr(embedding, "find_spec", lambda name: None if name in packages else found(name))


def test_it_is_on_where_the_extra_is_installed_and_off_where_it_is_not(monkeypatch):
    assert embedding.is_wanted(settings())
    hide(monkeypatch, "onnxruntime", "sentence_transformers")
    assert not embedding.is_wanted(settings())
    assert embedding.is_wanted(settings(url="http://127.0.0.1:1"))
    hide(monkeypatch, "numpy")
    assert not embedding.is_wanted(settings(url="http://127.0.0.1:1"))


def test_who_asks_for_it_is_told_what_to_install(monkeypatch):
    hide(monkeypatch, "numpy")
    assert not embedding.is_wanted(settings(mode="off"))
    with pytest.raises(ConfigurationError, match=r"pip install 'cacheproxy\[semantic\]'"):
        embedding.is_wanted(settings(mode="on"))
    ruled = resolve(
        {"upstreams": ["http://127.0.0.1:1"], "semantic.mode": "off", "rules": [{"set": {"semantic": "on"}}]}, None, {}
    ).settings
    with pytest.raises(ConfigurationError, match="pip install"):
        embedding.is_wanted(ruled)


async def test_a_model_in_the_process_embeds(start, session, backend, caplog):
    caplog.set_level("INFO")
    proxy = await start(semantic__mode="on", semantic__model_path=TINY)
    client = Client(proxy.base, session)
    body = {"messages": [{"role": "user", "content": "how do I change my password"}]}
    first = await client.chat(**body)
    assert (first.cache, first.get("x-cache-reason")) == ("MISS", "nothing_near")
    await until(lambda: len(proxy.house.meaning.index._index) == 1, what="the row")
    body["messages"][0]["content"] = "How do I change my password?"
    second = await client.chat(**body)
    assert (second.cache, second.get("x-cache-tier"), second.text) == ("HIT", "semantic", first.text)
    assert float(second.get("x-cache-similarity")) > 0.92
    assert TINY in caplog.text


class Late(Chosen):
    """Takes as long to load as the test wants, and fails as often."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__()
        self.loaded = threading.Event()
        self.failures = failures
        self.closed = 0

    async def warm(self) -> None:
        if self.failures:
            self.failures -= 1
            raise Trouble("the weights are damaged", "damaged")
        await until(self.loaded.is_set, 60)

    async def close(self) -> None:
        self.closed += 1


async def test_a_start_does_not_wait_for_ever(start, session, backend, monkeypatch, caplog):
    monkeypatch.setattr(meaning, "START_SECONDS", 0.01)
    late = Late()
    proxy = await start(embedder=late)
    client = Client(proxy.base, session)
    first = await client.chat()
    assert (first.status, first.cache, first.get("x-cache-reason")) == (200, "MISS", "semantic_loading")
    assert (await client.chat()).get("x-cache-tier") == "exact"
    assert "still being loaded" in caplog.text
    async with session.get(proxy.admin + "/metrics") as told:
        assert "cacheproxy_semantic_ready 0.0" in await told.text()
    late.loaded.set()
    await until(lambda: proxy.house.meaning.ready)
    other = await client.chat(messages=[{"role": "user", "content": "Say good-bye."}])
    assert other.get("x-cache-reason") == "nothing_near"
    async with session.get(proxy.admin + "/metrics") as told:
        assert "cacheproxy_semantic_ready 1.0" in await told.text()


async def test_what_cannot_be_loaded_is_tried_again_and_said_once(start, session, backend, monkeypatch, caplog):
    """B73: an error of the embedder at start-up does not stop the proxy."""
    monkeypatch.setattr(meaning, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(meaning, "START_SECONDS", 0.0)
    late = Late(failures=3)
    late.loaded.set()
    proxy = await start(embedder=late)
    assert (await Client(proxy.base, session).chat()).status == 200
    await until(lambda: proxy.house.meaning.ready)
    assert caplog.text.count("the weights are damaged") == 1


async def test_a_fault_of_ours_at_the_start_is_said_and_keeps_nobody_from_being_served(
    start, session, backend, monkeypatch, caplog
):  # fmt: skip
    def fail():
        raise ZeroDivisionError("what was asked")

    monkeypatch.setattr(meaning.likeness, "load", fail)
    proxy = await start(embedder=Chosen())
    answer = await Client(proxy.base, session).chat()
    assert (answer.status, answer.get("x-cache-reason")) == (200, "semantic_loading")
    assert "nothing is answered by meaning" in caplog.text
    assert "what was asked" not in caplog.text


async def test_a_proxy_ends_while_its_model_is_being_loaded(start, monkeypatch):
    monkeypatch.setattr(meaning, "START_SECONDS", 0.01)
    late = Late()
    proxy = await start(embedder=late)
    await proxy.running.stop()
    assert late.closed == 1


async def test_a_model_that_is_not_there_is_one_line(start, session, backend, tmp_path, caplog):
    proxy = await start(semantic__mode="on", semantic__model_path=str(tmp_path / "none"), semantic__threshold=0.93)
    answer = await Client(proxy.base, session).chat()
    assert (answer.status, answer.get("x-cache-reason")) == (200, "semantic_loading")
    assert caplog.text.count("nothing is answered by meaning") == 1
    assert "has no config.json" in caplog.text


@pytest.mark.parametrize(
    ("more", "ok", "says"),
    [
        ({"CACHEPROXY_SEMANTIC__MODE": "off"}, True, "are off"),
        ({"CACHEPROXY_SEMANTIC__MODEL_PATH": TINY}, True, "works (32 dimensions"),
        ({"CACHEPROXY_SEMANTIC__MODEL_PATH": "/nowhere"}, False, "has no config.json"),
        ({"CACHEPROXY_SEMANTIC__MODEL": "nobody/none"}, True, "downloaded from the hub when"),
        ({"CACHEPROXY_SEMANTIC__MODEL": "nobody/none", "CACHEPROXY_SEMANTIC__DOWNLOAD": "false"}, False, "not on this"),
        ({"CACHEPROXY_SEMANTIC__URL": "http://127.0.0.1:1"}, False, "cannot be reached"),
    ],
)
async def test_the_doctor_looks_at_the_model(more, ok, says, commands):
    done = await commands.run(
        "doctor", "--upstream", "http://127.0.0.1:1", "--data-dir", "none", "--json", environment=more
    )
    (found,) = [row for row in json.loads(done.out)["findings"] if row["part"].startswith("model")]
    assert (found["ok"], says in found["message"]) == (ok, True), found["message"]


# --- the threshold that a tolerated share of wrong answers means ---------------------------------------------------


def written(tmp_path, points, name="chosen") -> str:
    identity = {"name": name, "revision": "1", "dim": 64, "pooling": "mean", "prefix": "", "precision": "fp32"}
    rows = [{"threshold": threshold, "served": served, "wrong": wrong} for threshold, served, wrong in points]
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps({"embedder": identity, "points": rows}))
    return str(path)


POINTS = [(0.9, 2000, 100), (0.93, 1800, 20), (0.97, 1000, 0)]


@pytest.mark.parametrize(
    ("told", "threshold"),
    [
        ({"max_error": 0.02}, "0.9300"),
        ({"max_error": 0.005}, "0.9700"),
        ({"max_error": 0.02, "threshold": 0.95}, "0.9500"),
        ({"max_error": 0.0001}, "0.9200"),
        ({"max_error": 0.001}, "0.9700"),
        ({}, "0.9200"),
    ],
)
async def test_the_layer_picks_the_threshold_for_a_tolerated_error(start, session, backend, tmp_path, told, threshold):
    embedder = Chosen()
    for text, similarity in (("What is it?", 1.0), ("What is it ?!", 0.99)):
        embedder.near(text, similarity)
    values = {f"semantic__{name}": value for name, value in told.items()}
    proxy = await start(embedder=embedder, semantic__calibration=written(tmp_path, POINTS), **values)
    client = Client(proxy.base, session)
    await client.chat(messages=[{"role": "user", "content": "What is it?"}])
    await until(lambda: len(proxy.house.meaning.index._index) == 1)
    answer = await client.chat(messages=[{"role": "user", "content": "What is it ?!"}])
    assert (answer.get("x-cache-tier"), answer.get("x-cache-threshold")) == ("semantic", threshold)


async def test_what_is_known_of_another_embedder_says_nothing(start, tmp_path, caplog):
    told = {"semantic__max_error": 0.02, "semantic__calibration": written(tmp_path, POINTS, "another")}
    proxy = await start(embedder=Chosen(), **told)
    assert proxy.house.meaning.threshold is None
    assert "no threshold is known" in caplog.text


@pytest.mark.parametrize(("content", "says"), [(None, "cannot read"), ("{", "not valid JSON"), ("{}", "not a calib")])
async def test_a_calibration_that_cannot_be_read_is_a_clear_error(start, tmp_path, content, says):
    path = tmp_path / "calibration.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match=says):
        await start(embedder=Chosen(), semantic__calibration=str(path))


async def test_a_cross_encoder_needs_a_name(start):
    with pytest.raises(ConfigurationError, match="verifier_model"):
        await start(embedder=Chosen(), semantic__verifier="cross-encoder")
