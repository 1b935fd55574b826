"""The whole configuration as frozen models: every name, its default and its meaning, once."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr

from cacheproxy.core import canonical
from cacheproxy.core.rules import Mode, Share
from cacheproxy.schema.admission import AdmissionSettings
from cacheproxy.schema.jobs import JobSettings
from cacheproxy.schema.kinds import (
    Duration,
    Name,
    Patience,
    Pointer,
    Port,
    Size,
    read_pace,
    read_switch,
)
from cacheproxy.schema.knowledge import KbSettings
from cacheproxy.schema.matching import MatchingSettings
from cacheproxy.schema.model import Model
from cacheproxy.schema.prefix import PrefixSettings
from cacheproxy.schema.rates import RatesSettings
from cacheproxy.schema.redis import RedisSettings
from cacheproxy.schema.rules import RuleSettings
from cacheproxy.schema.upstreams import HealthSettings, UpstreamSettings


def _upstream(value: Any) -> Any:
    return {"url": value} if isinstance(value, str) else value


class ListenSettings(Model):
    host: str = "127.0.0.1"
    """Address of the proxy listener."""
    port: Port = 8800
    """Port of the proxy listener; 0 takes a free one."""


class AdminSettings(Model):
    host: str = "127.0.0.1"
    """Address of the admin listener; anything but loopback needs a token."""
    port: Port = 8801
    """Port of the admin listener; 0 takes a free one."""
    token: Annotated[SecretStr | None, Field(min_length=8)] = None
    """Bearer token for `/admin/*` and the page."""
    read_token: Annotated[SecretStr | None, Field(min_length=8)] = None
    """Bearer token that may only read: `GET`, and `POST /admin/lookup`."""
    token_file: str | None = None
    """A file with tokens like `admin.token`: one, or while they are exchanged two, a line each. Read anew when it
    changes."""
    read_token_file: str | None = None
    """The same for tokens like `admin.read_token`."""
    show_answers: bool = True
    """Whether the admin API shows words of answers and of questions that were asked before."""
    audit_file: str | None = None
    """A file (JSON lines, mode 0600) of what admin calls changed: who, what, how many. The log says the same."""
    audit_bytes: Size = 64 * 2**20
    """Size at which `admin.audit_file` becomes `<name>.1`, in place of the one before."""


def _read_key(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("sha256:") and not re.fullmatch("sha256:[0-9a-fA-F]{64}", value):
        raise ValueError("must be a key, or `sha256:` and 64 hexadecimal digits")
    return value


_Key = Annotated[SecretStr, BeforeValidator(_read_key), Field(min_length=1)]


class KeyGroupSettings(Model):
    name: Name
    """What rules call it."""
    keys: tuple[_Key, ...] = Field(min_length=1)
    """Its keys, as callers send them, or as `sha256:` and the hexadecimal SHA-256 digest of one."""


class AccessSettings(Model):
    scope: Share = Share.CREDENTIAL
    """Who shares answers. `credential`: nobody; `tenant`: the keys of one key group (others nobody); `shared`:
    everybody whom the backend accepts."""
    key_groups: tuple[KeyGroupSettings, ...] = ()
    """Groups of callers' keys, for rules and for the scope `tenant`."""
    grant_ttl: Duration = 300.0
    """How long the backend's acceptance of a credential holds before it is proven again."""
    grace: Duration = 3600.0
    """How long the last verdict holds while the backend cannot be asked."""
    hide_hits: bool = False
    """Send no header that tells a hit from a miss."""


_IGNORED = tuple(f"/{name}" for name in sorted(canonical.IGNORED))


class ExactSettings(Model):
    mode: Annotated[Mode, BeforeValidator(read_switch)] = Mode.ON
    """What identical requests get. `on`: the stored answer; `off`: always the backend's; `opt-in`: the stored one only
    if the request has a cache control of ours; `read-only`: nothing new is kept; `write-only`: kept, not served;
    `shadow`: looked up, compared with the backend's answer and counted, never served."""
    ttl: Duration = 3600.0
    """Lifetime of an answer, spread by ±10 %; 0 keeps nothing unless a request asks for a lifetime."""
    max_ttl: Duration = 30 * 86_400.0
    """The longest lifetime that a request, a rule or `ttl` may ask for."""
    models_ttl: Duration = 10.0
    """Lifetime of the list of models (`GET /v1/models`); 0 always asks the backend."""
    negative_ttl: Annotated[Duration, Field(le=60)] = 0.0
    """Lifetime of client errors that the same request would get again (400, 404, 422), at most a minute; 0 keeps
    none."""
    honour_max_age: bool = False
    """Let the `max-age` of a backend's answer cap its lifetime. Its `no-store` is always obeyed."""
    refresh: float = Field(default=0.1, ge=0, le=0.5)
    """The last share of a lifetime in which a use may have the answer fetched anew in the background, so that what is
    in use does not expire; 0 for never."""
    stale_while_revalidate: Duration = 0.0
    """How long past its lifetime an answer is still served, once, while a new one is fetched in the background."""
    stale_if_error: Duration = 0.0
    """How long past its lifetime an answer is served in place of a backend's failure (500, 502, 503, 504, none)."""
    keep_stale: Duration = 600.0
    """How long an answer is kept past its lifetime for requests that say `max-stale`."""
    variants: int = Field(default=1, ge=1, le=100)
    """How many different answers are kept for a request and served in turn, for those that have no temperature of 0
    and no seed."""
    ignore_fields: tuple[Pointer, ...] = _IGNORED
    """Fields of a request body that are not part of the key, as JSON pointers; replaces the list of those that do not
    change what is generated."""
    volatile_fields: tuple[Pointer, ...] = ()
    """More fields that are not part of the key, such as `/metadata/request_id`; `*` for every element of a list."""
    volatile_headers: tuple[Name, ...] = ()
    """More request headers that are not part of the key, beside those of the list in concepts.md."""


class ReplaySettings(Model):
    pace: Annotated[
        Literal["instant", "recorded"] | Annotated[float, Field(gt=0, le=100_000)], BeforeValidator(read_pace)
    ] = "instant"
    """How a stored stream is replayed: at once, as it came, or so many tokens a second."""
    speed: float = Field(default=1.0, gt=0, le=1000)
    """With `recorded`: how many times as fast as it came."""


class PriceSettings(Model):
    model: Name
    """A pattern of model names (`*`, `?`)."""
    prompt: float = Field(0.0, ge=0)
    """Price of a million prompt tokens."""
    completion: float = Field(0.0, ge=0)
    """Price of a million completion tokens."""


class SavingsSettings(Model):
    prices: tuple[PriceSettings, ...] = ()
    """What tokens cost; the first entry whose pattern matches the model counts."""
    currency: Name = "USD"
    """The currency of the prices."""


class StreamSettings(Model):
    ask_usage: bool = True
    """Ask the backend for the token usage of streams that are recorded (`stream_options.include_usage`); the caller
    gets it only if it asked. Off: the forwarded request is the caller's, byte for byte."""
    heartbeat: Duration = 0.0
    """While a stream has not begun, its caller gets a comment line every so often, so that nobody in between takes the
    connection for dead; 0 for none. An error that comes later is then an event of a stream that began with 200. A
    request sets its own by `X-Cache-Heartbeat: 5`."""
    stall: Duration = 10.0
    """The pause in a stream from which on it is counted as stalled."""


class FlightSettings(Model):
    mode: Annotated[Literal["on", "off"], BeforeValidator(read_switch)] = "on"
    """The same request asked while its answer is still being generated is given that answer, as it comes."""
    semantic: Annotated[Literal["on", "off"], BeforeValidator(read_switch)] = "off"
    """A question waits for the answer to a like question that is being generated."""
    abandon: Literal["cancel", "finish"] = "cancel"
    """What happens to an answer when the last caller who waits for it has left: `cancel` stops the backend, `finish`
    has it finished and stored."""
    event_ids: bool = False
    """Give the events of every stream an id, so that a caller who is cut off can go on after the last one it has
    (`Last-Event-ID`). Off: only where the request has `Last-Event-ID` or `X-Cache-Event-Ids: on`."""
    resume_window: Duration = 60.0
    """How long an answer that was given with ids can be gone on with; so long it is also generated for nobody."""
    bytes: Size = 32 * 2**20
    """Bytes of a running answer that are held for who comes late or reads slowly; a longer one takes nobody new, and
    drops who falls further behind."""
    lease: Annotated[Patience, Field(ge=0.1)] = 2.0
    """With Redis: how long the other replicas wait for a sign of life of the one that generates an answer."""


class StoreSettings(Model):
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
    secret_file: str | None = None
    """A file with at least 32 characters that keys are made with, the same for all replicas. Without it: a file in
    the data directory, or what the replicas agree on in Redis."""


class LimitSettings(Model):
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
    header_timeout: Patience = 10.0
    """Longest time that a client may take to send the head of a request, from its connection or first byte."""
    body_timeout: Patience = 30.0
    """Longest silence inside a request body that the proxy waits for. As a whole it may take so long, and a second
    more for each KiB."""
    write_timeout: Patience = 60.0
    """Longest time in which a client takes nothing of the answer that waits for it."""


class DrainSettings(Model):
    grace: Duration = 5.0
    """After SIGTERM: how long new work is still taken, while `/readyz` says 503."""
    timeout: Duration = 30.0
    """After the grace: how long running answers may take to finish."""


class CompatSettings(Model):
    litellm_body: bool = True
    """Understand and remove LiteLLM's body field `cache`."""


class TelemetrySettings(Model):
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Which log lines are written (to standard error)."""


class Settings(Model):
    upstreams: tuple[Annotated[UpstreamSettings, BeforeValidator(_upstream)], ...] = Field(min_length=1)
    """The backends. At least one; a text is short for `url`. Those that serve a model are taken for equals."""
    health: HealthSettings = HealthSettings()
    listen: ListenSettings = ListenSettings()
    admin: AdminSettings = AdminSettings()
    access: AccessSettings = AccessSettings()
    exact: ExactSettings = ExactSettings()
    prefix: PrefixSettings = PrefixSettings()
    semantic: MatchingSettings = MatchingSettings()
    stream: StreamSettings = StreamSettings()
    flight: FlightSettings = FlightSettings()
    admission: AdmissionSettings = AdmissionSettings()
    replay: ReplaySettings = ReplaySettings()
    savings: SavingsSettings = SavingsSettings()
    kb: KbSettings = KbSettings()
    store: StoreSettings = StoreSettings()
    redis: RedisSettings = RedisSettings()
    limits: LimitSettings = LimitSettings()
    rates: RatesSettings = RatesSettings()
    jobs: JobSettings = JobSettings()
    drain: DrainSettings = DrainSettings()
    compat: CompatSettings = CompatSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    rules: tuple[RuleSettings, ...] = ()
    """The table of rules: what holds for which requests."""
