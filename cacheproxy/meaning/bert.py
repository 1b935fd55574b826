"""The encoder of BERT and its kin as an ONNX graph, from their weights alone.

Texts stand in it one after the other without padding (rows of numbers, one a token); only attention, a small part of
the work, sees them beside each other. `places` says which row stands where, `back` is the inverse.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cacheproxy.errors import Trouble
from cacheproxy.meaning.card import is_shifted
from cacheproxy.meaning.graph import Graph
from cacheproxy.meaning.tensors import Tensors

_KIN = frozenset({"bert", "roberta", "xlm-roberta", "camembert"})
_FORBIDDEN = -1e9
"""Added to the attention that a token may not pay; its exponential is 0."""


def is_one(config: Mapping[str, Any]) -> bool:
    """Whether `config` describes an encoder that can be written down here."""
    return (
        config.get("model_type") in _KIN
        and config.get("hidden_act") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder", False)
    )


class Embeddings:
    """Tokens -> what goes into the encoder. Rows are read from the file when they are needed."""

    def __init__(self, weights: Tensors, config: Mapping[str, Any]) -> None:
        name = f"{_root(weights)}embeddings."
        self._words = weights[f"{name}word_embeddings.weight"]
        first = int(config.get("pad_token_id") or 0) + 1 if is_shifted(config) else 0
        kind = weights[f"{name}token_type_embeddings.weight"][0]
        self._positions = weights[f"{name}position_embeddings.weight"][first:] + kind

    def rows(self, texts: list[tuple[int, ...]]) -> NDArray[np.float32]:
        """One row for each token, text after text."""
        tokens = np.concatenate([np.array(text) for text in texts])
        positions = np.concatenate([np.arange(len(text)) for text in texts])
        rows: NDArray[np.float32] = self._words[tokens] + self._positions[positions]
        return rows


def placed(lengths: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """What the graph is told of texts with so many tokens each."""
    columns = np.arange(lengths.max())
    inside = columns < lengths[:, None]
    starts = np.cumsum(lengths) - lengths
    return {
        "places": np.where(inside, starts[:, None] + columns, 0),
        "back": np.flatnonzero(inside),
        "mask": np.where(inside, 0, _FORBIDDEN).astype(np.float32)[:, None, None, :],
    }


def _root(weights: Tensors) -> str:
    for root in "", "bert.", "roberta.":
        if f"{root}embeddings.LayerNorm.weight" in weights:
            return root
    raise Trouble("the weights are not those of such an encoder", "damaged")


class _Encoder:
    """The graph while it is written down."""

    def __init__(self, weights: Tensors, config: Mapping[str, Any]) -> None:
        self.graph = Graph()
        self._weights = weights
        self._root = _root(weights)
        self._epsilon = float(config["layer_norm_eps"])
        self._width, self._heads = int(config["hidden_size"]), int(config["num_attention_heads"])
        self._layers = int(config["num_hidden_layers"])

    def write(self) -> bytes:
        graph, width = self.graph, self._width
        rows = graph.floats("rows", "tokens", width)
        places = graph.numbers("places", "texts", "length")
        back = graph.numbers("back", "tokens")
        mask = graph.floats("mask", "texts", 1, 1, "length")
        by_head = graph.apply(
            "Concat", graph.apply("Shape", places), graph.shape(self._heads, width // self._heads), axis=0
        )
        scale = graph.constant(np.array((width // self._heads) ** -0.5, np.float32))
        flat = graph.shape(-1, width)
        rows = self._normal(rows, "embeddings.LayerNorm")

        def heads(name: str, order: list[int]) -> str:
            side_by_side = graph.apply("Gather", self._linear(rows, name), places, axis=0)
            return graph.apply("Transpose", graph.apply("Reshape", side_by_side, by_head), perm=order)

        for number in range(self._layers):
            layer = f"encoder.layer.{number}"
            query = graph.apply("Mul", heads(f"{layer}.attention.self.query", [0, 2, 1, 3]), scale)
            key = heads(f"{layer}.attention.self.key", [0, 2, 3, 1])
            value = heads(f"{layer}.attention.self.value", [0, 2, 1, 3])
            paid = graph.apply("Softmax", graph.apply("Add", graph.apply("MatMul", query, key), mask), axis=-1)
            seen = graph.apply("Transpose", graph.apply("MatMul", paid, value), perm=[0, 2, 1, 3])
            seen = graph.apply("Gather", graph.apply("Reshape", seen, flat), back, axis=0)
            rows = self._added(rows, seen, f"{layer}.attention.output")
            inner = graph.apply("Gelu", self._linear(rows, f"{layer}.intermediate.dense"))
            rows = self._added(rows, inner, f"{layer}.output")
        graph.output(graph.apply("Identity", rows), "tokens", width)
        return graph.written()

    def _linear(self, rows: str, name: str) -> str:
        weight = np.ascontiguousarray(self._tensor(f"{name}.weight").T)
        return self.graph.apply(
            "Gemm", rows, self.graph.constant(weight), self.graph.constant(self._tensor(f"{name}.bias"))
        )

    def _added(self, rows: str, more: str, name: str) -> str:
        return self._normal(self.graph.apply("Add", self._linear(more, f"{name}.dense"), rows), f"{name}.LayerNorm")

    def _normal(self, rows: str, name: str) -> str:
        weight, bias = (self.graph.constant(self._tensor(f"{name}.{part}")) for part in ("weight", "bias"))
        return self.graph.apply("LayerNormalization", rows, weight, bias, axis=-1, epsilon=self._epsilon)

    def _tensor(self, name: str) -> NDArray[np.float32]:
        return self._weights[self._root + name]


def encoder(weights: Tensors, config: Mapping[str, Any]) -> bytes:
    """The graph: from `rows`, `places`, `back` and `mask` to one row for each token. Raises `Trouble`."""
    return _Encoder(weights, config).write()
