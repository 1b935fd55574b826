"""What the files of a model say of it: how long its texts may be, how its vectors are made, and what tells them from
another's in the name of every index."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import Any

from cacheproxy.core.model import Identity
from cacheproxy.errors import Trouble
from cacheproxy.meaning.weights import Files

LONGEST_WINDOW = 8192
"""Tokens; longer ones are not believed, some models state none."""
_POOLING = {
    "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max", "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}  # fmt: skip
_OF_A_CALL = ("truncation", "padding", "version")
"""What a tokenizer's file keeps of the last call to it."""


@dataclass(frozen=True, slots=True)
class Card:
    """`window`: tokens that it reads at once, those at the ends included; `lower`: texts are given to it in lower case;
    `modules`: what is done one after the other, such as Transformer, Pooling, Normalize; `config`: the encoder's."""

    files: Files
    identity: Identity
    window: int
    lower: bool
    modules: tuple[str, ...]
    config: Mapping[str, Any]


def read(files: Files, prefix: str = "") -> Card:
    """The card of the model in `files`; `prefix` is put before each text, or the model's own if that is empty. Raises
    `Trouble`, kind ``damaged``."""
    try:
        return _read(files, prefix)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Trouble(
            f"the files of the embedding model say nothing usable: {type(error).__name__}", "damaged"
        ) from None


def _read(files: Files, prefix: str) -> Card:
    config = _json(files.root, "config.json")
    sentence = _json(files.root, "sentence_bert_config.json", {})
    tokenizer = _json(files.root, "tokenizer.json")
    listed = _json(files.root, "modules.json", [{"type": "Transformer"}, {"type": "Pooling"}])
    steps = sorted(listed, key=lambda each: each.get("idx", 0))
    modules = tuple(str(each["type"]).rpartition(".")[2] for each in steps)
    pooling, dim = "mean", int(config["hidden_size"])
    for step, module in zip(steps, modules, strict=True):
        if module == "Pooling":
            told = _json(files.root, f"{step['path']}/config.json") if "path" in step else {}
            pooling = _pooling(told)
            dim *= pooling.count("+") + 1
        elif module == "Dense":
            dim = int(_json(files.root, f"{step['path']}/config.json")["out_features"])
    lower = bool(sentence.get("do_lower_case", False))
    made_by = {
        "weights": files.digest, "lower": lower, "modules": modules,
        "tokenizer": {name: part for name, part in tokenizer.items() if name not in _OF_A_CALL},
    }  # fmt: skip
    revision = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()[:16]
    identity = Identity(files.name, revision, dim, pooling, prefix or _prompt(files.root))
    return Card(files, identity, _window(files.root, config, sentence), lower, modules, config)


def _json(root: Traversable, name: str, default: Any = None) -> Any:
    file = root
    for part in name.split("/"):
        file = file.joinpath(part)
    if default is not None and not file.is_file():
        return default
    return json.loads(file.read_bytes())


def _prompt(root: Traversable) -> str:
    """What the model itself puts before a text."""
    told = _json(root, "config_sentence_transformers.json", {})
    return str((told.get("prompts") or {}).get(told.get("default_prompt_name")) or "")


def _pooling(told: Mapping[str, Any]) -> str:
    """The ways of pooling, joined by +, in the order in which their vectors follow each other."""
    modes = told.get("pooling_mode") or [name for key, name in _POOLING.items() if told.get(key)] or ["mean"]
    return modes if isinstance(modes, str) else "+".join(map(str, modes))


def _window(root: Traversable, config: Mapping[str, Any], sentence: Mapping[str, Any]) -> int:
    """Tokens. RoBERTa and its kin have no position for as many as their padding's number says, and one."""
    positions = int(config.get("max_position_embeddings") or LONGEST_WINDOW)
    if is_shifted(config):
        positions -= int(config.get("pad_token_id") or 0) + 1
    told = sentence.get("max_seq_length") or _json(root, "tokenizer_config.json", {}).get("model_max_length")
    return min(int(told or positions), positions, LONGEST_WINDOW)


def is_shifted(config: Mapping[str, Any]) -> bool:
    """Whether positions are counted from after the padding's number."""
    return config.get("model_type") in {"roberta", "xlm-roberta", "camembert"}
