"""The whole configuration as frozen models: every name, its default and its meaning, once."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from cacheproxy.core import address, quantities


def _duration(value: Any) -> Any:
    return _read(quantities.duration(value))


def _size(value: Any) -> Any:
    return _read(quantities.size(value))


def _read(found: Any) -> Any:
    if isinstance(found, str):
        raise ValueError(found)
    return found


def _switch(value: Any) -> Any:
    """YAML reads a bare `on` as true."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


def _url(value: Any) -> Any:
    if isinstance(value, str):
        _read(wrong if isinstance(wrong := address.read(value), str) else None)
    return value


Duration = Annotated[float, BeforeValidator(_duration), Field(ge=0, lt=10**9)]
Patience = Annotated[float, BeforeValidator(_duration), Field(gt=0, lt=10**9)]
"""A duration that must not be 0: everything would fail at once."""
Size = Annotated[int, BeforeValidator(_size), Field(ge=0)]
Port = Annotated[int, Field(ge=0, le=65_535)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True)


class UpstreamSettings(_Model):
    url: Annotated[str, BeforeValidator(_url)]
    """Base URL of the backend, with or without a trailing `/v1`."""
    weight: float = Field(1.0, gt=0, le=1000)
    """Share of the requests when there are several."""


def _upstream(value: Any) -> Any:
    return {"url": value} if isinstance(value, str) else value


class ListenSettings(_Model):
    host: str = "127.0.0.1"
    """Address of the proxy listener."""
    port: Port = 8800
    """Port of the proxy listener; 0 takes a free one."""


class AdminSettings(_Model):
    host: str = "127.0.0.1"
    """Address of the admin listener; anything but loopback needs a token."""
    port: Port = 8801
    """Port of the admin listener; 0 takes a free one."""
    token: Annotated[SecretStr | None, Field(min_length=8)] = None
    """Bearer token for `/admin/*` and the page."""


class AccessSettings(_Model):
    grant_ttl: Duration = 300.0
    """How long the backend's acceptance of a credential holds before it is proven again."""
    grace: Duration = 3600.0
    """How long the last verdict holds while the backend cannot be asked."""
    hide_hits: bool = False
    """Send no header that tells a hit from a miss."""


class ExactSettings(_Model):
    mode: Annotated[Literal["on", "off"], BeforeValidator(_switch)] = "on"
    """Whether identical requests are answered from the cache."""
    ttl: Duration = 3600.0
    """Lifetime of an answer, spread by ±10 %; 0 keeps nothing unless a request asks for a lifetime."""
    max_ttl: Duration = 30 * 86_400.0
    """The longest lifetime that a request or `ttl` may ask for."""
    keep_stale: Duration = 600.0
    """How long an answer is kept past its lifetime for requests that say `max-stale`."""


class StreamSettings(_Model):
    ask_usage: bool = True
    """Ask the backend for the token usage of streams that are recorded (`stream_options.include_usage`); the caller
    gets it only if it asked. Off: the forwarded request is the caller's, byte for byte."""


class StoreSettings(_Model):
    data_dir: str = "./cacheproxy-data"
    """Directory of the cache file; `none` keeps answers in memory only."""
    memory_bytes: Size = 256 * 2**20
    """Bytes of answers kept in memory."""
    disk_bytes: Size = 4 * 2**30
    """Bytes of answers kept in the cache file."""
    deadline: Patience = 0.25
    """How long a look into the cache file may delay a request."""
    realm: str = "auto"
    """Which backends the answers belong to. `auto`: the upstreams' URLs, so that another backend never gets this
    one's answers; a fixed text keeps the cache when replicas come and go."""


class LimitSettings(_Model):
    body_bytes: Size = 64 * 2**20
    """Largest request body on cacheable paths; others pass without limit."""
    answer_bytes: Size = 16 * 2**20
    """Largest answer that is kept; larger ones pass unkept."""
    recording_bytes: Size = 128 * 2**20
    """Bytes that all answers being recorded may hold together."""
    connect_timeout: Patience = 5.0
    """Longest wait for a connection to a backend."""
    first_byte_timeout: Patience = 600.0
    """Longest wait for the head of a backend's answer."""
    idle_timeout: Patience = 120.0
    """Longest silence inside a backend's answer; a live stream has no other limit."""
    keepalive_timeout: Duration = 3630.0
    """How long a client's idle connection is kept open."""


class DrainSettings(_Model):
    grace: Duration = 5.0
    """After SIGTERM: how long new work is still taken, while `/readyz` says 503."""
    timeout: Duration = 30.0
    """After the grace: how long running answers may take to finish."""


class CompatSettings(_Model):
    litellm_body: bool = True
    """Understand and remove LiteLLM's body field `cache`."""


class TelemetrySettings(_Model):
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Which log lines are written (to standard error)."""


class Settings(_Model):
    upstreams: tuple[Annotated[UpstreamSettings, BeforeValidator(_upstream)], ...] = Field(min_length=1)
    """The backends: replicas of one service. At least one; a text is short for `url`."""
    listen: ListenSettings = ListenSettings()
    admin: AdminSettings = AdminSettings()
    access: AccessSettings = AccessSettings()
    exact: ExactSettings = ExactSettings()
    stream: StreamSettings = StreamSettings()
    store: StoreSettings = StoreSettings()
    limits: LimitSettings = LimitSettings()
    drain: DrainSettings = DrainSettings()
    compat: CompatSettings = CompatSettings()
    telemetry: TelemetrySettings = TelemetrySettings()


def names() -> dict[str, tuple[str, Any, str]]:
    """Every configuration name: (type, default, meaning), in order."""
    found: dict[str, tuple[str, Any, str]] = {}
    for group, outer in Settings.model_fields.items():
        model = outer.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            for name, field in model.model_fields.items():
                found[f"{group}.{name}"] = (_kind(field), field.default, field.description or "")
        else:
            found[group] = ("list of URLs", None, outer.description or "")
            for name, field in UpstreamSettings.model_fields.items():
                default = None if field.is_required() else field.default
                found[f"{group}[].{name}"] = (_kind(field), default, field.description or "")
    return found


def _kind(field: Any) -> str:
    validators = [m.func for m in field.metadata if isinstance(m, BeforeValidator)]
    if _duration in validators:
        return "duration"
    if _size in validators:
        return "size"
    text = str(field.annotation)
    if "Literal" in text:
        return " or ".join(f"`{value}`" for value in field.annotation.__args__)
    return {"bool": "true or false", "str": "text", "int": "number", "float": "number"}.get(
        getattr(field.annotation, "__name__", ""), "secret text"
    )
