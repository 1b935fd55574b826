"""The models themselves: the same vectors as sentence-transformers, and which texts they are for."""

import asyncio
import json
from dataclasses import replace

import numpy as np
import pytest

from cacheproxy.core.model import Unfit
from cacheproxy.errors import Trouble
from cacheproxy.meaning import card as cards
from cacheproxy.meaning import embedder as embedders
from cacheproxy.meaning import weights
from cacheproxy.meaning.tokens import Piece, scripts_of, strangeness
from tests.meaning.models import MODELS, TINY, copy_of, expected
from tests.parts import embedder as part

pytest.importorskip("onnxruntime", reason="the extra `semantic` is not installed")

from tokenizers import Tokenizer

from cacheproxy.meaning.runtime import Runtime, can_run, groups
from cacheproxy.meaning.tokens import Tokens

SCOPE = bytes(16)
LATIN = frozenset({"LATIN"})


def card_of(name: str, **identity):
    card = cards.read(weights.find(name, str(MODELS / name)))
    return replace(card, identity=replace(card.identity, **identity))


def likeness(ours, theirs) -> float:
    """The least cosine of two vectors that should be the same."""
    ours, theirs = np.array(ours, np.float64), np.array(theirs, np.float64)
    return float(np.min((ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)))


def pieces_of(model: Runtime, texts: list[str]) -> list[Piece]:
    pieces = [model.read(text) for text in texts]
    assert [piece for piece in pieces if isinstance(piece, Unfit)] == []
    return pieces


@pytest.fixture(scope="module")
def minilm() -> Runtime:
    card = cards.read(weights.find("all-MiniLM-L6-v2", str(part.install())))
    return Runtime(card, 1)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("name", TINY)
def test_the_vectors_are_those_of_sentence_transformers(name, pooling):
    told = expected(name)
    model = Runtime(card_of(name, pooling=pooling), 1)
    assert likeness(model.vectors(pieces_of(model, told["texts"])), told[pooling]) > 0.99999


@pytest.mark.engine
def test_the_real_ones_too(minilm):
    told = expected("all-MiniLM-L6-v2")
    assert likeness(minilm.vectors(pieces_of(minilm, told["texts"])), told["mean"]) > 0.99999


@pytest.mark.parametrize("name", TINY)
def test_a_vector_is_the_same_in_whatever_company(name):
    model = Runtime(card_of(name), 1)
    pieces = pieces_of(model, expected(name)["texts"] * 3)
    together = model.vectors(pieces)
    alone = [model.vectors([piece])[0] for piece in pieces]
    assert likeness(together, alone) > 0.999999


def test_a_model_of_lower_case_reads_lower_case():
    as_it_is, lower = (Runtime(replace(card_of("tiny-roberta"), lower=lower), 1) for lower in (False, True))
    assert as_it_is.read("HOW do") is Unfit.UNKNOWN_TOKENS
    assert lower.read("HOW do").tokens == as_it_is.read("how do").tokens


def test_texts_of_like_length_are_attended_to_together():
    lengths = [5, 200, 6, 18, 4, 190, 16, 60]
    made = groups(lengths)
    assert [[lengths[number] for number in group] for group in made] == [[4, 5, 6, 16], [18], [60], [190, 200]]
    assert sorted(number for group in made for number in group) == list(range(8))


def test_a_text_at_the_window_is_read_whole_and_one_beyond_is_not():
    model = Runtime(card_of("tiny-bert"), 1)
    assert len(model.read("the " * 46).tokens) == 48
    assert model.read("the " * 47) is Unfit.TOO_LONG
    assert model.read("x" * 48 * 32 + " ") is Unfit.TOO_LONG


def test_what_is_put_before_a_text_counts():
    model = Runtime(card_of("tiny-bert", prefix="order "), 1)
    assert model.read("the") == Piece("order the", (2, *model.read("the").tokens[1:]))
    assert model.read("the " * 45).tokens != ()
    assert model.read("the " * 46) is Unfit.TOO_LONG


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u200b", "\u200b \ufeff", "\x00"])
def test_what_says_nothing_is_empty(text):
    assert Runtime(card_of("tiny-bert"), 1).read(text) is Unfit.EMPTY


def test_too_many_unknown_tokens():
    model = Runtime(card_of("tiny-bert"), 1)
    assert model.read("the ☃") is Unfit.UNKNOWN_TOKENS
    tokens = Tokens(
        Tokenizer.from_file(str(MODELS / "tiny-bert" / "tokenizer.json")), 1000
    )  # fmt: skip
    assert isinstance(tokens.read("the " * 50 + "☃"), Piece)  # 1 of 51
    assert tokens.read("the " * 49 + "☃") is Unfit.UNKNOWN_TOKENS  # 1 of 50: 2 %


def test_half_a_character_is_unknown():
    assert Runtime(card_of("tiny-bert"), 1).read("the \ud800") is Unfit.UNKNOWN_TOKENS


@pytest.mark.engine
@pytest.mark.parametrize(
    "text",
    [
        "如何重置密码？", "我的订单在哪里", "你好", "日本の首都はどこですか", "パスワードを忘れました", "как сбросить пароль",
        "كيف أعيد تعيين كلمة المرور", "비밀번호를 재설정하려면", "איך לאפס סיסמה", "पासवर्ड कैसे रीसेट करें", "ฉันจะรีเซ็ตรหัสผ่านได้อย่างไร",
        "πώς αλλάζω κωδικό", "reset 密码 please", "Reset my password 😀",
    ],
)  # fmt: skip
def test_an_english_model_is_not_for_other_scripts(minilm, text):
    """Also where each letter is known to it, and so no token is unknown."""
    assert minilm.read(text) is Unfit.UNKNOWN_TOKENS


@pytest.mark.engine
@pytest.mark.parametrize(
    "text",
    [
        "How do I reset my password?", "naïve café, 50 €", "What is the angle α in the triangle?", "¿Cómo cambio mi clave?",
        "def f(x): return x ** 2", "v3.1", "10 µg", "“quoted” – dashed…", "x" * 90,
    ],
)  # fmt: skip
def test_it_is_for_these(minilm, text):
    assert isinstance(minilm.read(text), Piece)


@pytest.mark.engine
def test_a_text_is_never_cut(minilm):
    assert len(minilm.read("word " * 254).tokens) == 256
    assert minilm.read("word " * 255) is Unfit.TOO_LONG


def test_scripts_of_which_there_are_words():
    latin = {f"{a}{b}{c}": 0 for a in "abcdefgh" for b in "ijklmno" for c in "pqrst"}
    letters = dict.fromkeys("абвгдежзийклмн", 0) | {f"##{letter}": 0 for letter in "абвгдежзийклмн"}
    signs = {chr(0x4E00 + n): 0 for n in range(3000)}
    assert scripts_of(latin | letters) == {"LATIN"}
    assert scripts_of(latin | letters | signs) == {"LATIN", "CJK"}
    assert scripts_of({f"▁{word}": 0 for word in latin}) == {"LATIN"}


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("plain words", 0), ("α and β", 0), ("naïve", 0), ("слово", 1), ("word слово", 5 / 9), ("はい", 1), ("a 12 ☃", 0),
        ("है", 0), ("हिन्दी", 1), ("xслово", 5 / 6), ("ок", 1),
    ],
)  # fmt: skip
def test_the_share_of_strange_letters(text, share):
    assert strangeness(text, LATIN) == pytest.approx(share)


def test_tokens_made_of_bytes_are_never_unknown():
    written = json.loads((MODELS / "tiny-bert" / "tokenizer.json").read_text())
    vocabulary = written["model"]["vocab"]
    vocabulary |= {f"Ġ{n}": len(vocabulary) + n for n in range(2100)}
    tokens = Tokens(Tokenizer.from_str(json.dumps(written)), 48)
    assert tokens._scripts is None
    assert tokens.read("о" * 2) is Unfit.UNKNOWN_TOKENS  # by its tokens alone


async def test_the_whole_way():
    made = embedders.open_embedder("tiny-bert", path=str(MODELS / "tiny-bert"))
    await made.warm()
    told = expected("tiny-bert")
    vectors = await asyncio.gather(*[made.embed(text, SCOPE) for text in told["texts"]])
    assert likeness(vectors, told["mean"]) > 0.99999
    assert await made.embed("the ☃", SCOPE) is Unfit.UNKNOWN_TOKENS
    await made.close()


@pytest.mark.parametrize("cut", [0, 7, 100, 50_000])
async def test_weights_that_are_cut_are_trouble(tmp_path, cut):
    root = copy_of("tiny-bert", tmp_path)
    file = root / "model.safetensors"
    file.write_bytes(file.read_bytes()[:cut])
    made = embedders.open_embedder("tiny-bert", path=str(root))
    with pytest.raises(Trouble) as raised:
        await made.warm()
    assert raised.value.kind == "damaged"
    await made.close()


@pytest.mark.parametrize("content", ["", "{}", "[]", "no JSON"])
async def test_a_tokenizer_that_is_none_is_trouble(tmp_path, content):
    root = copy_of("tiny-bert", tmp_path)
    (root / "tokenizer.json").write_text(content)
    with pytest.raises(Trouble) as raised:
        await embedders.open_embedder("tiny-bert", path=str(root)).warm()
    assert raised.value.kind == "damaged"


async def test_weights_of_another_shape_are_trouble(tmp_path):
    root = copy_of("tiny-bert", tmp_path)
    config = json.loads((root / "config.json").read_text())
    (root / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(Trouble) as raised:
        await embedders.open_embedder("tiny-bert", path=str(root)).warm()
    assert raised.value.kind == "damaged"


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "mpnet"},
        {"hidden_act": "relu"},
        {"position_embedding_type": "relative_key"},
        {"is_decoder": True},
    ],
)
def test_an_encoder_of_another_kind_is_not_run_here(config):
    card = card_of("tiny-bert")
    assert can_run(card)
    assert not can_run(replace(card, config={**card.config, **config}))
    assert not can_run(replace(card, modules=("Transformer", "Pooling", "Dense", "Normalize")))
    assert not can_run(card_of("tiny-bert", pooling="mean+max"))


def test_without_what_runs_it_the_message_says_what_to_do(monkeypatch):
    monkeypatch.setattr(embedders, "find_spec", lambda name: None)
    with pytest.raises(Trouble, match="pip install sentence-transformers") as raised:
        embedders.load(card_of("tiny-bert"), 1)
    assert raised.value.kind == "missing"
