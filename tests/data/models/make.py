"""Makes the two tiny models here, and what sentence-transformers says of texts: ``expected.json`` in each, and
``all-MiniLM-L6-v2.json``. Needs sentence-transformers; its weights are random numbers from one seed.

    python tests/data/models/make.py DIRECTORY-WITH-MINILM
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, XLMRobertaConfig, XLMRobertaModel

HERE = Path(__file__).parent
WORDS = (  # noqa: SIM905
    "how do i reset my pass word on the site what is a limit for card transfer to bank account open close why was it"
    " refused can you tell me when order ##s ##ing ##ed ##er ##word ? . , ! ' - 1 2 3"
).split()
SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
TEXTS = [
    "how do i reset my password on the site?", "what is the limit", "a", "why was my card refused, can you tell me?",
    "order " * 20,
]  # fmt: skip
REAL = [
    "How do I reset my password?", "how can I reset my password", "What is the capital of France?", "a",
    "My card was declined at the shop yesterday, although there is enough money on the account. What can I do?",
    "naïve café", "Disable two-factor authentication for order #1042 (v3.1).", "word " * 200,
]  # fmt: skip


def bert() -> tuple[Tokenizer, torch.nn.Module]:
    signs = [f"{mark}{sign}" for mark in ("", "##") for sign in "abcdefghijklmnopqrstuvwxyz"]
    vocabulary = {w: n for n, w in enumerate(dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *signs]))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $0 [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    config = BertConfig(vocab_size=len(vocabulary), max_position_embeddings=64, layer_norm_eps=1e-12, **SHAPE)
    return tokenizer, BertModel(config, add_pooling_layer=False)


def roberta() -> tuple[Tokenizer, torch.nn.Module]:
    words = [f"▁{word}" for word in WORDS if not word.startswith("##")]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", *words, *"abcdefghijklmnopqrstuvwxyz?.,!"]
    tokenizer = Tokenizer(
        models.Unigram([(piece, -float(n)) for n, piece in enumerate(dict.fromkeys(pieces))], unk_id=3)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing("<s> $0 </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    config = XLMRobertaConfig(
        vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=66, type_vocab_size=1, layer_norm_eps=1e-5,
        pad_token_id=1, bos_token_id=0, eos_token_id=2, **SHAPE,
    )  # fmt: skip
    return tokenizer, XLMRobertaModel(config, add_pooling_layer=False)


def write(place: Path, tokenizer: Tokenizer, model: torch.nn.Module, special: dict[str, str]) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.3)
    model.eval()
    model.save_pretrained(place)
    tokenizer.save(str(place / "tokenizer.json"))
    told = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 48, **special}
    (place / "tokenizer_config.json").write_text(json.dumps(told, indent=1))
    steps = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    rows = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for n, (path, kind) in enumerate(steps)
    ]
    (place / "modules.json").write_text(json.dumps(rows, indent=1))
    (place / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 48, "do_lower_case": False}))
    (place / "1_Pooling").mkdir(exist_ok=True)
    expected = {}
    for mode in "cls", "max", "mean":  # the last is what stays
        ways = {f"pooling_mode_{way}_tokens": way == mode for way in ("max", "mean")}
        pooling = {"word_embedding_dimension": 32, "pooling_mode_cls_token": mode == "cls", **ways}
        (place / "1_Pooling" / "config.json").write_text(json.dumps(pooling, indent=1))
        expected[mode] = vectors(SentenceTransformer(str(place), device="cpu"), TEXTS)
    (place / "expected.json").write_text(json.dumps({"texts": TEXTS, **expected}))


def vectors(model: SentenceTransformer, texts: list[str]) -> list[list[float]]:
    return [[round(float(x), 6) for x in vector] for vector in np.asarray(model.encode(texts, batch_size=1))]


def main() -> None:
    torch.manual_seed(1)
    for name, make, special in (
        ("tiny-bert", bert, {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}),
        (
            "tiny-roberta",
            roberta,
            {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"},
        ),
    ):
        (HERE / name).mkdir(exist_ok=True)
        write(HERE / name, *make(), special)
    real = SentenceTransformer(sys.argv[1], device="cpu")
    told = {"texts": REAL, "mean": vectors(real, REAL)}
    (HERE / "all-MiniLM-L6-v2.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
