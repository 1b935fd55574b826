"""The tensors in a ``.safetensors`` file, as views of its bytes: nothing is copied that is not asked for.

The file is a number of 8 bytes, so many bytes of JSON that say what is where, and the numbers as they lie in memory.
"""

import json
import mmap
import struct
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cacheproxy.errors import Trouble

_FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}


class Tensors:
    """The floats of `file`. Raises `Trouble` of the kind ``damaged`` if it is no such file."""

    def __init__(self, file: Traversable) -> None:
        try:
            self._held = _mapped(file) if isinstance(file, Path) else file.read_bytes()
            self._bytes: NDArray[np.uint8] = np.frombuffer(self._held, np.uint8)
            (length,) = struct.unpack("<Q", self._bytes[:8].tobytes())
            self._rows: dict[str, Any] = json.loads(self._bytes[8 : 8 + length].tobytes())
        except (OSError, ValueError, struct.error) as error:
            raise Trouble(f"the weights cannot be read: {type(error).__name__}", "damaged") from None
        self._start = 8 + length

    def rest(self) -> None:
        """Let go of what was read of the file; it comes back when it is needed."""
        if isinstance(self._held, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self._held.madvise(mmap.MADV_DONTNEED)

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        """The tensor `name`, read-only."""
        try:
            row = self._rows[name]
            first, last = row["data_offsets"]
            shape = tuple(row["shape"])
            if not 0 <= first <= last <= len(self._bytes) - self._start:
                raise ValueError("not within the file")
            part = self._bytes[self._start + first : self._start + last]
            if row["dtype"] == "BF16":  # the upper half of a float
                wide = (part.view("<u2").astype(np.uint32) << 16).view(np.float32)
                return wide.reshape(shape)
            return part.view(_FLOATS[row["dtype"]]).reshape(shape).astype(np.float32, copy=False)
        except (KeyError, ValueError, TypeError) as error:
            raise Trouble(f"the weights have no usable {name}: {type(error).__name__}", "damaged") from None


def _mapped(file: Path) -> mmap.mmap:
    with file.open("rb") as opened:
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
