"""ONNX graphs as bytes: just enough of the format to write one down, without the packages that make them from others'.

The bytes are those of the protocol buffers of ONNX 1.15 (IR version 9, operators of set 20): numbers of fields are from
its ``onnx.proto``.
"""

import struct

import numpy as np
from numpy.typing import NDArray

Attribute = int | float | list[int]

_IR_VERSION, _OPERATORS = 9, 20
_FLOAT, _INT64 = 1, 7
_TYPES = {np.dtype(np.float32): _FLOAT, np.dtype(np.int64): _INT64}
_KIND_FLOAT, _KIND_INT, _KIND_INTS = 1, 2, 7


class Graph:
    """A graph that is being written down. Values are called by names."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []

    def floats(self, name: str, *shape: int | str) -> str:
        """An input of floats; a text in `shape` names a size that varies."""
        self._inputs.append(_value(name, _FLOAT, shape))
        return name

    def numbers(self, name: str, *shape: int | str) -> str:
        """An input of integers."""
        self._inputs.append(_value(name, _INT64, shape))
        return name

    def constant(self, array: NDArray[np.float32] | NDArray[np.int64]) -> str:
        """A value that is part of the graph."""
        name = f"c{len(self._constants)}"
        dims = b"".join(_number(1, size) for size in array.shape)
        kind = _number(2, _TYPES[array.dtype])
        self._constants.append(dims + kind + _bytes(8, name.encode()) + _bytes(9, array.tobytes()))
        return name

    def shape(self, *sizes: int) -> str:
        """A constant of integers."""
        return self.constant(np.array(sizes, np.int64))

    def apply(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        """What `operator` makes of `inputs`."""
        name = f"v{len(self._nodes)}"
        self._nodes.append(
            b"".join(_bytes(1, each.encode()) for each in inputs)
            + _bytes(2, name.encode())
            + _bytes(4, operator.encode())
            + b"".join(_bytes(5, _attribute(key, value)) for key, value in attributes.items())
        )
        return name

    def output(self, name: str, *shape: int | str) -> None:
        """Floats that are asked for."""
        self._outputs.append(_value(name, _FLOAT, shape))

    def written(self) -> bytes:
        """The whole as a model."""
        graph = b"".join(
            [
                *(_bytes(1, node) for node in self._nodes),
                _bytes(2, b"encoder"),
                *(_bytes(5, each) for each in self._constants),
                *(_bytes(11, each) for each in self._inputs),
                *(_bytes(12, each) for each in self._outputs),
            ]
        )
        return _number(1, _IR_VERSION) + _bytes(7, graph) + _bytes(8, _bytes(1, b"") + _number(2, _OPERATORS))


def _varint(number: int) -> bytes:
    number &= 2**64 - 1  # negative ones in two's complement
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _float(field: int, number: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", number)


def _attribute(name: str, value: Attribute) -> bytes:
    head = _bytes(1, name.encode())
    if isinstance(value, float):
        return head + _float(2, value) + _number(20, _KIND_FLOAT)
    if isinstance(value, int):
        return head + _number(3, value) + _number(20, _KIND_INT)
    return head + b"".join(_number(8, each) for each in value) + _number(20, _KIND_INTS)


def _value(name: str, kind: int, shape: tuple[int | str, ...]) -> bytes:
    sizes = b"".join(
        _bytes(1, _number(1, size) if isinstance(size, int) else _bytes(2, size.encode())) for size in shape
    )
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, sizes)))
