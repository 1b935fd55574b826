"""What the configuration says of the embedder in this process."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from cacheproxy.schema.kinds import Name, read_duration
from cacheproxy.schema.model import Model


class EmbedderSettings(Model):
    model: Name = "all-MiniLM-L6-v2"
    """The embedding model: a name on the Hugging Face hub (without an owner it is of sentence-transformers), or the
    path of a directory. Another model has an index of its own."""
    model_path: Name | None = None
    """A directory with the model's files. Without it they are looked for in installed packages that ship the model,
    then in the local cache of the hub."""
    download: bool = False
    """Whether a model that is not on this machine is downloaded from the hub at the start, once."""
    prefix: str = ""
    """What is put before each question, where the model wants something there, such as `query: `; without it what the
    model's own files say."""
    threads: int = Field(default=1, ge=1, le=64)
    """Processors that embedding may use at once."""
    window: Annotated[float, BeforeValidator(read_duration), Field(ge=0, le=1)] = 0.02
    """How long questions wait for company at most, to be embedded together. One that comes alone never waits."""
    memo: int = Field(default=4096, ge=1, le=10_000_000)
    """Vectors that are remembered, some 2 KiB each."""
