"""A question that has been embedded: what an answer to it is found by later. Data."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """`partition`: 32 bytes, within which alone it may meet others; `vector`: of shape ``(dim,)``, length 1."""

    text: str
    partition: bytes
    vector: "NDArray[np.float32]"
