"""What the configuration says of the backends, and of when one is passed over."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from cacheproxy.schema.kinds import Duration, Names, Patience, read_switch, read_url
from cacheproxy.schema.model import Model

PRESETS = {"auto": (4, 256, 16), "realtime": (8, 16, 8), "batch": (64, 128, 64)}
"""The least, the most, and how many it begins with."""


MOST_SLOTS = 100_000


def read_slots(value: Any) -> Any:
    """A number, also as a text, or one of the words."""
    found = int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 10 else value
    if isinstance(found, int) and not isinstance(found, bool) and 1 <= found <= MOST_SLOTS:
        return found
    if isinstance(found, str) and found in PRESETS:
        return found
    raise ValueError(f"must be a whole number, 1 to {MOST_SLOTS}, or {', '.join(f'`{word}`' for word in PRESETS)}")


def read_probe(value: Any) -> Any:
    """`off`, or a path."""
    value = read_switch(value)
    if isinstance(value, str) and value != "off":
        if not (value.startswith("/") and value.isascii() and value.isprintable() and " " not in value):
            raise ValueError("must be `off` or a path such as `/health`")
    return value


class UpstreamSettings(Model):
    url: Annotated[str, BeforeValidator(read_url)]
    """Base URL of the backend, with or without a trailing `/v1`."""
    weight: float = Field(1.0, gt=0, le=1000)
    """Share of the requests when there are several."""
    models: Names = ()
    """Patterns (`*`, `?`) of the models that it serves. Without: what it lists itself (`GET /v1/models`)."""
    max_inflight: Annotated[int | str, BeforeValidator(read_slots)] = 16
    """How many requests it is given at once; what more comes waits. A number, or found by how its latency answers to
    load: `auto` (4 to 256), `realtime` (8 to 16), `batch` (64 to 128)."""


class HealthSettings(Model):
    failures: int = Field(default=5, ge=1, le=1000)
    """So many failures in a row and a backend is passed over: no connection, no answer, errors (500, 502, 503, 504),
    answers that break off."""
    open: Patience = 1.0
    """How long one is given nothing that could not be connected to or was silent; longer each time, up to 30 s (5 s
    where connections are refused)."""
    ejection: Patience = 10.0
    """How long one is passed over that answers with errors, while others do well; longer each time, up to a minute."""
    slow_start: Duration = 10.0
    """In what time the weight of one that is well again rises from a tenth; 0 for at once."""
    retry_budget: float = Field(default=0.2, ge=0, le=1)
    """The share of requests that may be tried on another backend because one could not be connected to; ten in ten
    seconds always may."""
    probe: Annotated[str, BeforeValidator(read_probe)] = "off"
    """A path that every backend is asked for, such as `/health`: two failures and it is given nothing, until it
    answers again. `off` for none."""
    interval: Patience = 5.0
    """How often `health.probe` is asked for."""
    models_interval: Duration = 30.0
    """With several backends: how often each is asked which models it serves; 0 for never."""
