"""What the configuration says of how much a caller's key may use."""

from pydantic import Field

from cacheproxy.schema.model import Model

MOST = 2**50


class RatesSettings(Model):
    requests_per_minute: int = Field(default=0, ge=0, le=MOST)
    """Requests of one key that go to the backend in any minute; more are answered with 429 and `Retry-After`. 0: as
    many as it likes. Stored and shared answers are free."""
    tokens_per_minute: int = Field(default=0, ge=0, le=MOST)
    """Tokens, read and written, that the backend spends on one key in any minute, by what it says itself (`usage`). A
    request is let through while any are left; what it cost is counted when it has ended. 0: as many as it likes."""


class RatesRowSettings(Model):
    requests_per_minute: int | None = Field(default=None, ge=0, le=MOST)
    """As `rates.requests_per_minute`, for each key by itself; 0 takes the limit off. Requests to which other limits
    apply are counted by themselves."""
    tokens_per_minute: int | None = Field(default=None, ge=0, le=MOST)
    """As `rates.tokens_per_minute`, likewise."""
