"""A model with its first layers only: a tenth of the work and no sense in what it says, for tests of how it is asked.

Reads and writes GGUF, version 3: a head, values by name, the list of tensors, their data. Standard library only.
"""

import re
import struct
from pathlib import Path
from typing import BinaryIO

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT, _ARRAY = 8, 9
_ALIGNMENT = 32


def shorten(source: Path, target: Path, layers: int) -> None:
    """Write the model in `source` to `target` with so many layers."""
    with source.open("rb") as model, target.open("wb") as out:
        magic, version, tensors, values = struct.unpack("<4sIQQ", model.read(24))
        if (magic, version) != (b"GGUF", 3):
            raise ValueError(f"{source} is no GGUF file of version 3")
        head = bytearray()
        for _ in range(values):
            name, value = _named(model), _value(model, *struct.unpack("<I", kind := model.read(4)))
            if name.endswith(b".block_count"):
                value = struct.pack("<I", layers)
            head += struct.pack("<Q", len(name)) + name + kind + value
        listed = [_tensor(model) for _ in range(tensors)]
        data = _aligned(model.tell())
        ends = dict(_spans([offset for *_, offset in listed], source.stat().st_size - data))
        kept = [entry for entry in listed if not (m := re.match(rb"blk\.(\d+)\.", entry[0])) or int(m[1]) < layers]
        out.write(struct.pack("<4sIQQ", magic, version, len(kept), values) + head)
        offset = 0
        for name, shape, old in kept:
            out.write(struct.pack("<Q", len(name)) + name + shape + struct.pack("<Q", offset))
            offset += _aligned(ends[old] - old)
        for _, _, old in kept:
            out.write(bytes(_aligned(out.tell()) - out.tell()))
            model.seek(data + old)
            out.write(model.read(ends[old] - old))


def _aligned(position: int) -> int:
    return -(-position // _ALIGNMENT) * _ALIGNMENT


def _spans(offsets: list[int], end: int) -> list[tuple[int, int]]:
    """Where what begins at each offset ends."""
    ordered = sorted(offsets)
    return list(zip(ordered, [*ordered[1:], end], strict=True))


def _named(model: BinaryIO) -> bytes:
    return model.read(*struct.unpack("<Q", model.read(8)))


def _value(model: BinaryIO, kind: int) -> bytes:
    """The bytes of a value of this kind."""
    if kind == _TEXT:
        length = model.read(8)
        return length + model.read(*struct.unpack("<Q", length))
    if kind == _ARRAY:
        inner, count = struct.unpack("<IQ", begin := model.read(12))
        if inner in _SIZES:
            return begin + model.read(_SIZES[inner] * count)
        return begin + b"".join([_value(model, inner) for _ in range(count)])
    return model.read(_SIZES[kind])


def _tensor(model: BinaryIO) -> tuple[bytes, bytes, int]:
    """The next tensor's name, its shape and type as they are written, and where its data begin."""
    name = _named(model)
    count = model.read(4)
    shape = count + model.read(8 * struct.unpack("<I", count)[0] + 4)
    return name, shape, *struct.unpack("<Q", model.read(8))
