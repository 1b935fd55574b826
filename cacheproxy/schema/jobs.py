"""What the configuration says of long work that admin calls order, and of requests that are kept and asked later."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from cacheproxy.schema.kinds import Duration, Patience, Size
from cacheproxy.schema.model import Model


def _read_path(value: Any) -> Any:
    if isinstance(value, str):
        parts = value.split("/")
        if not value.isascii() or parts[0] or len(parts) < 2 or not all(part.isprintable() for part in parts):
            raise ValueError("must begin with `/`, such as `/_jobs`")
        if not all(parts[1:]) or any(mark in value for mark in "?# %"):
            raise ValueError("must be a path without a trailing `/`, such as `/_jobs`")
    return value


class JobSettings(Model):
    ttl: Duration = 3600.0
    """How long a job that has ended can be asked about."""
    max_jobs: int = Field(default=100, ge=1, le=100_000)
    """Most jobs of admin calls that are known at a time. Where more come, those that ended first are forgotten
    earlier."""
    max_bytes: Size = 128 * 2**20
    """Most bytes that they hold together: the requests of those that have not ended, and what came of the others."""
    path: Annotated[str | None, BeforeValidator(_read_path)] = None
    """A path of the proxy listener under which callers find their deferred requests, such as `/_jobs`; it is taken from
    the backend. `null` for none: then only the admin listener tells of them."""
    max_age: Annotated[Patience, Field(ge=1)] = 86_400.0
    """How long a deferred request may wait for its turn; then it has failed."""
    max_deferred_bytes: Size = 256 * 2**20
    """Most bytes that deferred requests and their answers hold together; 0 defers none."""
    max_deferred_per_key: int = Field(default=1000, ge=0, le=1_000_000)
    """Most deferred requests of one credential that have not ended."""
    deferred_concurrency: int = Field(default=4, ge=1, le=1024)
    """How many of them are asked at once, while the backend has room."""
    attempts: int = Field(default=5, ge=1, le=100)
    """How often one is asked whose backend fails."""
    pause: Patience = 2.0
    """How long one waits whose backend failed; each time twice as long."""
    lease: Annotated[Patience, Field(ge=0.5)] = 30.0
    """How long another replica, or the next start, waits for a sign of life of the one that asks."""
