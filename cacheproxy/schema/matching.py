"""What the configuration says of answers by meaning."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SecretStr

from cacheproxy.core.likeness import DEFAULT, Guard
from cacheproxy.core.rules import Opinion, Reach
from cacheproxy.schema.kinds import Name, Patience, Size, read_duration, read_switch, read_url
from cacheproxy.schema.model import Model


def _read_guards(value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    if isinstance(names, (list, tuple)):
        for name in names:
            if name not in {guard.value for guard in Guard}:
                raise ValueError(f"must be some of {', '.join(Guard)}")
    return names


class MatchingSettings(Model):
    mode: Annotated[Reach, BeforeValidator(read_switch)] = Reach.ON
    """Whether a question that was asked before in other words gets the answer of that one. `on`, by itself only where
    the extra `semantic` is installed; `off`; `opt-in`: only requests that send `X-Cache-Semantic`; `shadow`: looked up
    and counted, never served."""
    model: Name = "all-MiniLM-L6-v2"
    """The embedding model: a name on the Hugging Face hub (without an owner it is of sentence-transformers), the path
    of a directory, or the model's name at `semantic.url`. Another model has an index of its own."""
    model_path: Name | None = None
    """A directory with the model's files. Without it they are looked for in installed packages that ship the model,
    then in the local cache of the hub, then on the hub."""
    download: bool = True
    """Whether a model that is not on this machine is downloaded from the hub, once, in the background."""
    threads: int = Field(default=0, ge=0, le=64)
    """Processors that embedding may use at once. 0: all that there are, 4 at most."""
    window: Annotated[float, BeforeValidator(read_duration), Field(ge=0, le=10)] = 0.02
    """How long questions wait for company at most, to be embedded together. One that comes alone never waits."""
    memo: int = Field(default=4096, ge=1, le=10_000_000)
    """Vectors that are remembered, some 2 KiB each."""
    url: Annotated[str | None, BeforeValidator(read_url)] = None
    """Where questions are embedded instead: a server that speaks OpenAI's `/v1/embeddings`."""
    dimensions: int = Field(default=384, ge=2, le=8192)
    """How many numbers the vectors of `semantic.url` have."""
    api_key: SecretStr | None = None
    """The credential for it, if it wants one."""
    most_characters: int = Field(default=1000, ge=1)
    """Questions longer than that are not sent to it: a server may cut them without a word. Keep it within the model's
    window (some 4 characters a token)."""
    prefix: str = ""
    """What is put before each question, where the model wants something there, such as `query: `; without it what the
    model's own files say."""
    threshold: float = Field(default=0.92, ge=0.5, le=1)
    """The cosine similarity from which on two questions can be the same."""
    guards: Annotated[tuple[str, ...], BeforeValidator(_read_guards)] = tuple(
        guard.value for guard in Guard if guard in DEFAULT
    )
    """What is looked at beside the similarity, any of which can say that two questions differ."""
    verifier: Annotated[Opinion, BeforeValidator(read_switch)] = Opinion.CLASSIFIER
    """What gives a second opinion on a like question to which no guard objects. `off`; `classifier`: a small one that
    comes with the proxy; `cross-encoder`: the model `semantic.verifier_model`; `judge`: in doubt, the backend's own
    model."""
    verifier_model: Name | None = None
    """A cross-encoder or a model for natural language inference: a name on the Hugging Face hub, or a directory."""
    verifier_least: float | None = Field(default=None, ge=0, le=1)
    """The probability from which on two questions are the same. If nothing is said 0.15 for the classifier, 0.5 for a
    model."""
    verifier_certain: float = Field(default=0.97, ge=0.5, le=1)
    """Below this similarity the judge is always asked, unless the classifier holds the questions for different."""
    verifier_timeout: Patience | None = None
    """How long a second opinion may delay a request. If nothing is said 250 ms, 2 s for the judge."""
    candidates: int = Field(default=16, ge=1, le=100)
    """How many near questions are looked at."""
    keywords: float = Field(default=1, ge=0, le=1000)
    """How much a question's words count against its vector (1) in the order in which candidates are looked at. More
    for part numbers and the codes of regulations."""
    embed_timeout: Patience = 0.25
    """How long the embedding of a question may delay a request."""
    search_timeout: Patience = 0.05
    """How long the search for near questions may delay a request."""
    max_error: float | None = Field(default=None, gt=0, lt=1)
    """The share of wrong answers among those by meaning that is tolerated. The threshold is chosen by it, from what is
    known of the embedding model, and not below a `threshold` that is stated. Where samples tell more, thresholds rise
    by themselves (if nothing is said above 0.02)."""
    calibration: Name | None = None
    """A file that `cacheproxy tune --json` made: what is known of another embedding model than the usual one."""
    sample: float = Field(default=0.01, ge=0, le=1)
    """The share of answers by meaning for which the backend is asked too, beside the caller's way, to see whether it
    says the same."""
    sample_calls: int = Field(default=60, ge=0)
    """Most calls to the backend an hour for that."""
    sample_tokens: int = Field(default=100_000, ge=0)
    """Most tokens an hour for that."""
    promote_after: int = Field(default=2, ge=1, le=64)
    """Where credentials share answers (`access.scope`): how many of them must have been told the same by the backend
    before an answer is found by meaning by others."""
    near_miss_log: Name | None = None
    """A file in which questions are noted that were nearly answered by meaning, one JSON line each, for `tune`."""
    near_miss_texts: bool = False
    """Whether that has the texts of questions; else hashes stand for them."""
    near_miss_bytes: Size = 64 * 2**20
    """Where the file is full it is begun anew, and one older is kept."""
    index_rows: int = Field(default=200_000, ge=1)
    """Most questions that are kept in this process, where there is no Redis."""
