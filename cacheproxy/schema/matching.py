"""What the configuration says of answers by meaning."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from cacheproxy.core.likeness import Guard
from cacheproxy.core.rules import Reach
from cacheproxy.schema.kinds import Patience, read_switch
from cacheproxy.schema.model import Model


class MatchingSettings(Model):
    mode: Annotated[Reach, BeforeValidator(read_switch)] = Reach.OFF
    """Whether a question that was asked before in other words gets the answer of that one. `on`; `off`; `opt-in`: only
    requests that send `X-Cache-Semantic`; `shadow`: looked up and counted, never served."""
    threshold: float = Field(default=0.92, ge=0.5, le=1)
    """The cosine similarity from which on two questions can be the same."""
    guards: tuple[Guard, ...] = tuple(Guard)
    """What is looked at beside the similarity, any of which can say that two questions differ."""
    candidates: int = Field(default=16, ge=1, le=100)
    """How many near questions are looked at."""
    embed_timeout: Patience = 0.25
    """How long the embedding of a question may delay a request."""
    search_timeout: Patience = 0.05
    """How long the search for near questions may delay a request."""
    index_rows: int = Field(default=200_000, ge=1)
    """Most questions that are kept in this process, where there is no Redis."""
