"""Which vectors can be compared. What cannot is refused before it is kept or searched with."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cacheproxy.core.key import KEY_BYTES
from cacheproxy.core.model import Row
from cacheproxy.errors import Trouble

Floats = NDArray[np.float32]


def unit(vector: NDArray[np.floating[Any]], dim: int) -> Floats:
    """`vector` with the length 1, shape ``(dim,)``. Raises `Trouble` if it is not one that has a direction."""
    if not isinstance(vector, np.ndarray) or vector.dtype.kind != "f":
        raise Trouble("the vector is not one of floats")
    if vector.shape != (dim,):
        raise Trouble(f"the vector is not of {dim} dimensions")
    exact = vector.astype(np.float64)
    largest = float(np.max(np.abs(exact), initial=0.0))
    if not 0.0 < largest < math.inf:  # a NaN is neither
        raise Trouble("the vector has no direction")
    exact /= largest  # so that no square is too large or too small
    return (exact / np.linalg.norm(exact)).astype(np.float32)


def checked(row: Row, dim: int) -> Floats:
    """The vector of `row`, with the length 1. Raises `Trouble` if the row cannot be kept."""
    check_partition(row.partition)
    if len(row.key) != KEY_BYTES:
        raise Trouble("the key of a row is not one of an entry")
    if not math.isfinite(row.expires_at):
        raise Trouble("the row has no time at which it expires")
    return unit(row.vector, dim)


def check_partition(partition: bytes) -> None:
    """Raises `Trouble` for what is no partition."""
    if len(partition) != KEY_BYTES:
        raise Trouble("the partition is not a key")
