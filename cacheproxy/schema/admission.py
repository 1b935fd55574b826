"""What the configuration says of the gate before the backend."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from cacheproxy.schema.kinds import Duration, Names, Patience, Size, read_switch
from cacheproxy.schema.model import Model


class P0Settings(Model):
    depth: int | None = Field(default=20, ge=0)
    """Most requests that wait; one more is answered with 429. `null` for any number."""
    bytes: Size = 256 * 2**20
    """Most bytes that those hold that wait."""
    timeout: Annotated[Duration | None, Field(gt=0)] = 30.0
    """Longest wait; then 503. `null` for as long as it takes."""
    weight: float = Field(default=16.0, gt=0, le=1000)
    """Its share of the slots while fewer requests wait than there are slots."""
    burst: Duration = 0.0
    """A queue that was empty may be longer than `depth`, ten times as long at most, while it is through in such a time;
    0 for never."""


class P1Settings(Model):
    depth: int | None = Field(default=100, ge=0)
    """Most requests that wait; one more is answered with 429. `null` for any number."""
    bytes: Size = 256 * 2**20
    """Most bytes that those hold that wait."""
    timeout: Annotated[Duration | None, Field(gt=0)] = 60.0
    """Longest wait; then 503. `null` for as long as it takes."""
    weight: float = Field(default=4.0, gt=0, le=1000)
    """Its share of the slots while fewer requests wait than there are slots."""
    burst: Duration = 1.0
    """A queue that was empty may be longer than `depth`, ten times as long at most, while it is through in such a time;
    0 for never."""
    age: Duration = 10.0
    """Having waited so long, it is given one of every `admission.share` slots while the queue of P0 is short (a quarter
    of its depth); 0 for never."""
    bound: Duration = 50.0
    """Having waited so long, it is given one of every `admission.share` slots in any case; 0 for never."""


class P2Settings(Model):
    depth: int | None = Field(default=None, ge=0)
    """Most requests that wait; one more is answered with 429. `null` for any number."""
    bytes: Size = 256 * 2**20
    """Most bytes that those hold that wait."""
    timeout: Annotated[Duration | None, Field(gt=0)] = None
    """Longest wait; then 503. `null` for as long as it takes."""
    weight: float = Field(default=1.0, gt=0, le=1000)
    """Its share of the slots while fewer requests wait than there are slots."""
    burst: Duration = 0.0
    """A queue that was empty may be longer than `depth`, ten times as long at most, while it is through in such a time;
    0 for never."""
    age: Duration = 30.0
    """Having waited so long, it is given one of every `admission.share` slots while the queue of P0 is short (a quarter
    of its depth); 0 for never."""
    bound: Duration = 300.0
    """Having waited so long, it is given one of every `admission.share` slots in any case; 0 for never."""


class OverloadSettings(Model):
    mode: Annotated[Literal["on", "off"], BeforeValidator(read_switch)] = "on"
    """Whether less urgent requests are refused for the sake of P0: new ones of P2 at first, then new ones of P1."""
    utilisation: float = Field(default=0.9, gt=0, le=1)
    """The part of the slots, or of the backend by its own account, from which on it is busy."""
    room: float = Field(default=0.8, gt=0, le=1)
    """The part below which it has room again."""
    budget: Patience = 1.0
    """How long a request of P0 may wait."""
    first_byte: Patience = 10.0
    """When the streams of P0 begin at the latest."""
    patience: Duration = 2.0
    """How long P2 alone is refused before P1 is too."""
    calm: Duration = 5.0
    """How long P0 must get through before less is refused again."""
    gpu_metrics: Names = ()
    """Pages of NVIDIA's DCGM exporter, one for each upstream, in their order."""


class AdmissionSettings(Model):
    mode: Annotated[Literal["on", "off"], BeforeValidator(read_switch)] = "on"
    """Whether requests wait for a slot of a backend (`upstreams[].max_inflight`)."""
    p0: P0Settings = P0Settings()
    p1: P1Settings = P1Settings()
    p2: P2Settings = P2Settings()
    share: int = Field(default=20, ge=2, le=1000)
    """Of so many slots one goes to those that have waited too long."""
    free_paths: Names = ("/v1/files*", "/v1/batches*", "/v1/models*", "/tokenize", "/detokenize", "/v1/tokenize")
    """Patterns of paths whose requests take no slot; nor do those that only read (`GET`, `HEAD`, `DELETE`)."""
    shed_threshold: float | None = Field(default=None, ge=0, le=1)
    """Where a request of P2 would be refused, an answer to a question of this similarity does, if its guards and the
    verifier agree. `null` for none."""
    forward: Annotated[Literal["off", "vllm", "sglang", "dynamo"], BeforeValidator(read_switch)] = "off"
    """Whose own scheduler is told the class of each request: `vllm` (field `priority`, lower first; needs
    `--scheduling-policy priority`), `sglang` (field `priority`, higher first; needs `--enable-priority-scheduling`),
    `dynamo` (header `x-dynamo-request-priority`, higher first)."""
    overload: OverloadSettings = OverloadSettings()
