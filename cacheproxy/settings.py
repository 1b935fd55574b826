"""The whole configuration as frozen models, and the only reader of files and environment.

Defaults < YAML file < environment < flags. Every value knows where it came from; an unknown name is an error that
names the nearest known one.
"""

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from cacheproxy.errors import ConfigurationError

PREFIX = "CACHEPROXY_"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_KUBERNETES = re.compile(r"CACHEPROXY_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)")
"""What Kubernetes sets in every pod for a Service that is called ``cacheproxy``; no configuration."""


def _duration(value: Any) -> Any:
    if isinstance(value, str) and (found := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*", value)):
        return float(found.group(1)) * _UNITS[found.group(2) or "s"]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number of seconds, or like 250ms, 30s, 5m, 1h")
    return value


def _size(value: Any) -> Any:
    if isinstance(value, str) and (found := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)):
        if found.group(2).upper() in _SIZES:
            return int(float(found.group(1)) * _SIZES[found.group(2).upper()])
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a number of bytes, or like 64KiB, 64MiB, 1GiB")
    return value


Duration = Annotated[float, BeforeValidator(_duration), Field(ge=0, lt=10**9)]
Size = Annotated[int, BeforeValidator(_size), Field(ge=0)]
Port = Annotated[int, Field(ge=0, le=65_535)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True)


class UpstreamSettings(_Model):
    url: str
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
    mode: Literal["on", "off"] = "on"
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
    deadline: Duration = 0.25
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
    connect_timeout: Duration = 5.0
    """Longest wait for a connection to a backend."""
    first_byte_timeout: Duration = 600.0
    """Longest wait for the head of a backend's answer."""
    idle_timeout: Duration = 120.0
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


class Resolved:
    """Settings and, for each dotted name that was set, where its value came from."""

    def __init__(self, settings: Settings, origins: Mapping[str, str]) -> None:
        self.settings = settings
        self.origins = dict(origins)


def resolve(flags: Mapping[str, Any], config: Path | None, environment: Mapping[str, str] | None = None) -> Resolved:
    """The configuration from all sources. `flags` by dotted name. Raises `ConfigurationError`."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    if config is not None:
        for name, value in _flat(_read_file(config)).items():
            _put(values, origins, name, value, f"file {config}")
    for name, value in _environment(os.environ if environment is None else environment).items():
        _put(values, origins, name, value, f"environment {PREFIX}{name.upper().replace('.', '__')}")
    for name, value in flags.items():
        _put(values, origins, name, value, "flag")
    _refuse_unknown(values, origins)
    try:
        settings = Settings.model_validate(_nest(values))
    except ValidationError as error:
        raise ConfigurationError(_explain(error, origins)) from None
    _refuse_contradictions(settings)
    return Resolved(settings, origins)


def _read_file(path: Path) -> dict[str, Any]:
    import yaml  # only who has a file pays for its reader

    try:
        value = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not valid YAML: {error}") from None
    if value is not None and not isinstance(value, dict):
        raise ConfigurationError(f"{path} must be a mapping of names to values")
    return value or {}


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        dotted = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            flat.update(_flat(value, f"{dotted}."))
        elif value is not None and not isinstance(value, Mapping):
            flat[dotted] = value
    return flat


def _nest(values: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in values.items():
        *path, last = name.split(".")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    return tree


def _put(values: dict[str, Any], origins: dict[str, str], name: str, value: Any, origin: str) -> None:
    values[name] = value
    origins[name] = origin


def _environment(environment: Mapping[str, str]) -> dict[str, Any]:
    import orjson

    found: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or _KUBERNETES.fullmatch(variable):
            continue
        name = variable[len(PREFIX) :].lower().replace("__", ".")
        if name == "upstreams":
            try:
                found[name] = orjson.loads(text) if text.lstrip().startswith("[") else _listed(text)
            except orjson.JSONDecodeError:
                raise ConfigurationError(f"{variable} must be URLs separated by commas, or a JSON list") from None
        else:
            found[name] = text
    return found


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


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


def _refuse_unknown(values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    known = [name for name in names() if "[]" not in name]
    groups = set(Settings.model_fields)
    for name in values:
        if name in known:
            continue
        nearest = difflib.get_close_matches(name, known, 1, 0.0)[0]
        hint = f"; {name} is a group of keys" if name in groups else f"; the nearest known one is `{nearest}`"
        raise ConfigurationError(f"unknown configuration key `{name}` ({origins[name]}){hint}")


def _explain(error: ValidationError, origins: Mapping[str, str]) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(str(part) for part in problem["loc"])
    origin = next((origins[o] for o in (name, name.split(".")[0]) if o in origins), "default")
    if name == "upstreams" and problem["type"] == "missing":
        return "no backend is given: say --upstream http://127.0.0.1:8000 (or `upstreams` in the configuration)"
    return f"configuration key `{name}` ({origin}): {problem['msg'].removeprefix('Value error, ')}"


def _refuse_contradictions(settings: Settings) -> None:
    from cacheproxy.core.hosts import is_loopback

    if settings.exact.ttl > settings.exact.max_ttl:
        raise ConfigurationError("`exact.ttl` is longer than `exact.max_ttl`; raise the one or lower the other")
    if settings.admin.token is None and not is_loopback(settings.admin.host):
        raise ConfigurationError(
            f"`admin.host` is {settings.admin.host}, which others can reach, and `admin.token` is not set; "
            "set a token or listen on 127.0.0.1"
        )
    if (
        settings.listen.port
        and settings.listen.port == settings.admin.port
        and settings.listen.host == settings.admin.host
    ):
        raise ConfigurationError("`listen.port` and `admin.port` are the same; choose another for one of them")
    if settings.limits.answer_bytes > settings.limits.recording_bytes:
        raise ConfigurationError(
            "`limits.answer_bytes` is larger than `limits.recording_bytes`; no answer could be kept"
        )
