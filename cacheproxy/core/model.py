"""The nouns that every room shares. Frozen data, no behaviour beyond what the data says of itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Fields = tuple[tuple[bytes, bytes], ...]
"""HTTP field lines in order of arrival, names and values as the bytes that came."""


class Endpoint(StrEnum):
    """The operations whose answers are cached."""

    CHAT = "chat.completions"
    COMPLETIONS = "completions"
    RESPONSES = "responses"
    EMBEDDINGS = "embeddings"
    RERANK = "rerank"
    SCORE = "score"
    MODELS = "models"


STREAMED = frozenset({Endpoint.CHAT, Endpoint.COMPLETIONS, Endpoint.RESPONSES})
"""The operations that can answer with a stream of events."""


class Form(StrEnum):
    """How an answer was recorded."""

    JSON = "json"
    EVENTS = "events"


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose answers: 16 bytes derived on our side (by default a keyed fingerprint of the credential), and the caller's
    own namespace in it."""

    owner: bytes
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """A cacheable request, bound to its key (32 bytes).

    `credential`: the fingerprint of who asks; `choices`: how many the answer must have; `most_tokens`: the limit on
    them, where an answer need not say that it was cut by it; `given`: the parsed body, where only that tells how many
    results there must be.
    """

    endpoint: Endpoint
    key: bytes
    scope: Scope
    credential: bytes
    model: str
    stream: bool
    wants_usage: bool
    choices: int
    most_tokens: int | None = None
    given: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A proven-complete answer in its recorded form, content coding removed, comments of a stream dropped.

    `id_literal` and `created_literal` are the exact bytes (name, colon, value) that stand wherever the answer
    states its id and time, or empty where they cannot be exchanged safely. `request_id`: the backend gave
    its answer one. `status`: 200, or the client error that it is. `tokens`: prompt and completion tokens that the
    backend counted. `pace`: for a stream, the pause before each event, two bytes each, in milliseconds. `one_form`:
    what it would be in the other form is not certain.
    """

    form: Form
    content_type: str
    body: bytes
    has_usage: bool
    id_literal: bytes = b""
    created_literal: bytes = b""
    request_id: bool = False
    status: int = 200
    tokens: tuple[int, int] = (0, 0)
    pace: bytes = b""
    one_form: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored answer. Times are seconds of the wall clock; `expires_at` is absolute and always set.

    `owner`: whose scope it is in; `credential`: the fingerprint of the credential with which it was fetched, `asked_at`
    when: at the latest then the backend accepted that. `took`: seconds of the backend's time that it cost; of a batch,
    its part. `knowledge`: the knowledge bases it depends on, as in the canonical list: ``name`` or
    ``name@version``, each part percent-encoded. `prefix`: the id of the family of prompts that it was asked for with,
    empty if there is none. `epoch`: how many removals its store had counted when it was put.
    """

    key: bytes
    owner: bytes
    credential: bytes
    namespace: str
    endpoint: Endpoint
    model: str
    answer: Answer
    stored_at: float
    fresh_until: float
    expires_at: float
    took: float
    tags: tuple[str, ...] = ()
    asked_at: float = 0.0
    knowledge: tuple[str, ...] = ()
    prefix: str = ""
    epoch: int = field(default=0, compare=False)

    def past(self, now: float) -> "Entry":
        """The same, with its lifetime over at `now` at the latest."""
        return replace(self, fresh_until=min(self.fresh_until, now))

    @property
    def size(self) -> int:
        """Bytes this entry is counted with: its body, names that are longer than usual, and a fixed allowance."""
        names = len(self.model) + len(self.namespace) + sum(map(len, self.tags)) + sum(map(len, self.knowledge))
        return len(self.answer.body) + len(self.answer.pace) + max(0, names - USUAL_NAMES) + ENTRY_OVERHEAD


ENTRY_OVERHEAD = 1024
"""Bytes a stored answer costs beyond its body (objects, key, strings), rounded up from a measurement."""
USUAL_NAMES = 256
"""Characters of its names that are in that allowance."""


@dataclass(frozen=True, slots=True)
class Census:
    """What a store holds now."""

    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Identity:
    """What an embedder is. Vectors of two embedders may be compared only where all of this is the same.

    `dim`: numbers in a vector; `prefix`: what it puts before a text; `precision`: of its weights.
    """

    name: str
    revision: str
    dim: int
    pooling: str = "mean"
    prefix: str = ""
    precision: str = "fp32"


class Unfit(Enum):
    """Why a text has no vector."""

    EMPTY = "empty"
    TOO_LONG = "too_long"  # more tokens than the embedder reads; a text is never cut
    BUSY = "busy"  # more texts wait than can be embedded in time
    UNKNOWN_TOKENS = "unknown_tokens"  # too large a share of tokens that it does not know


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A question in the vector index, and the entry that answers it.

    `key`: the entry's, 32 bytes; `partition`: 32 bytes, within which alone it is found; `vector`: floats of shape
    ``(dim,)``, of any length but zero; `text`: the question; `expires_at`: absolute seconds.
    """

    key: bytes
    partition: bytes
    vector: "NDArray[np.floating[Any]]"
    text: str
    expires_at: float


@dataclass(frozen=True, slots=True)
class Near:
    """A row that was found.

    `similarity`: cosine, -1 to 1; None where the index cannot tell it. `by_meaning`, `by_words`: its rank, from 1,
    among those found by the vector and by the words; None if it was not. `text`: the question of the row.
    """

    key: bytes
    similarity: float | None
    by_meaning: int | None
    by_words: int | None
    text: str = field(default="", compare=False)
