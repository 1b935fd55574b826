"""What the configuration says of answers by meaning."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SecretStr

from cacheproxy.core.likeness import Guard
from cacheproxy.core.rules import Reach
from cacheproxy.schema.kinds import Name, Patience, read_switch, read_url
from cacheproxy.schema.model import Model


def _read_guards(value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    if isinstance(names, (list, tuple)):
        for name in names:
            if name not in {guard.value for guard in Guard}:
                raise ValueError(f"must be some of {', '.join(Guard)}")
    return names


class MatchingSettings(Model):
    mode: Annotated[Reach, BeforeValidator(read_switch)] = Reach.OFF
    """Whether a question that was asked before in other words gets the answer of that one. `on`; `off`; `opt-in`: only
    requests that send `X-Cache-Semantic`; `shadow`: looked up and counted, never served."""
    url: Annotated[str | None, BeforeValidator(read_url)] = None
    """Where questions are embedded: a server that speaks OpenAI's `/v1/embeddings`."""
    model: Name = "all-minilm-l6-v2"
    """The embedding model's name there. Another model has an index of its own."""
    dimensions: int = Field(default=384, ge=2, le=8192)
    """How many numbers its vectors have."""
    api_key: SecretStr | None = None
    """The credential for it, if it wants one."""
    prefix: str = ""
    """What is put before each question, where the model wants something there, such as `query: `."""
    most_characters: int = Field(default=1000, ge=1)
    """Questions longer than that are not embedded: a server may cut them without a word. Keep it within the model's
    window (some 4 characters a token)."""
    threshold: float = Field(default=0.92, ge=0.5, le=1)
    """The cosine similarity from which on two questions can be the same."""
    guards: Annotated[tuple[str, ...], BeforeValidator(_read_guards)] = tuple(guard.value for guard in Guard)
    """What is looked at beside the similarity, any of which can say that two questions differ."""
    candidates: int = Field(default=16, ge=1, le=100)
    """How many near questions are looked at."""
    embed_timeout: Patience = 0.25
    """How long the embedding of a question may delay a request."""
    search_timeout: Patience = 0.05
    """How long the search for near questions may delay a request."""
    index_rows: int = Field(default=200_000, ge=1)
    """Most questions that are kept in this process, where there is no Redis."""
