"""HTTP field lines: which cross the proxy, which belong to one hop, which count for the key. Pure."""

import re

from cacheproxy.core.model import Fields

HOP_BY_HOP = frozenset({
    b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization", b"te",
    b"trailer", b"transfer-encoding", b"upgrade",
})  # fmt: skip
"""RFC 9110 section 7.6.1 and its history: meaningful for one connection only."""

NEVER_NOMINATED = frozenset({
    b"authorization", b"api-key", b"x-api-key", b"openai-organization", b"openai-project", b"cookie", b"host",
    b"content-length", b"content-type", b"content-encoding", b"cache-control", b"date", b"set-cookie",
})  # fmt: skip
"""Fields that a ``Connection`` header cannot remove: dropping them would change whose request this is, or what
its body means (RFC 9110 section 7.6.1 forbids nominating fields meant for all recipients)."""

CREDENTIALS = (b"authorization", b"api-key", b"x-api-key", b"openai-organization", b"openai-project")
"""Fields that together are the credential."""

CONTROLS = frozenset({
    b"x-cache-control", b"x-cache-ttl", b"x-cache-namespace", b"x-cache-tags", b"x-cache-kb",
    b"x-cache-semantic", b"x-priority", b"x-cache-event-ids", b"x-cache-heartbeat",
})  # fmt: skip
"""Request controls of ours, removed before forwarding. `Cache-Control` and `Priority` are forwarded."""

UNKEYED = frozenset({
    # the connection and the message's own framing
    b"host", b"content-length", b"content-type", b"content-encoding", b"expect", b"date", b"via",
    # what the answer may look like on the wire, not what it says
    b"accept", b"accept-encoding", b"accept-charset",
    # cache and scheduling controls, read by us
    b"cache-control", b"pragma", b"priority", b"prefer", b"last-event-id",
    # who the client program is
    b"user-agent", b"referer", b"origin", b"dnt", b"from",
    # tracing and request ids
    b"traceparent", b"tracestate", b"baggage", b"b3", b"x-request-id", b"x-correlation-id", b"request-id",
    b"x-client-request-id", b"x-amzn-trace-id", b"x-cloud-trace-context", b"idempotency-key", b"helicone-request-id",
    # hops before us
    b"forwarded", b"x-real-ip", b"true-client-ip", b"cf-ray", b"cf-connecting-ip", b"cf-ipcountry", b"cf-visitor",
    b"cdn-loop", b"x-envoy-expected-rq-timeout-ms", b"x-envoy-attempt-count", b"x-envoy-external-address",
    b"x-scheme", b"x-original-forwarded-for",
    # browsers
    b"upgrade-insecure-requests",
})  # fmt: skip
UNKEYED_PREFIXES = (b"x-stainless-", b"x-forwarded-", b"sec-fetch-", b"sec-ch-", b"x-b3-", b"x-datadog-")
"""Request fields that are not part of the key; every other field is. Documented in docs/concepts.md."""


_ZERO_WEIGHT = re.compile(rb"\s*q\s*=\s*0(?:\.0*)?\s*")


def values(fields: Fields, name: bytes) -> list[bytes]:
    """Every value of the field `name` (lower case), in order."""
    return [v for n, v in fields if n.lower() == name]


def first(fields: Fields, name: bytes) -> bytes | None:
    """The first value of the field `name` (lower case)."""
    for n, v in fields:
        if n.lower() == name:
            return v
    return None


def tokens(fields: Fields, name: bytes) -> list[bytes]:
    """The lower-cased members of a comma-separated list field, over all its lines."""
    return [t for v in values(fields, name) for t in (p.strip().lower() for p in v.split(b",")) if t]


def end_to_end(fields: Fields) -> Fields:
    """The lines that cross a proxy: hop-by-hop ones and those that ``Connection`` nominates are left out."""
    nominated = frozenset(tokens(fields, b"connection")) - NEVER_NOMINATED
    drop = HOP_BY_HOP | nominated if nominated else HOP_BY_HOP
    return tuple(line for line in fields if line[0].lower() not in drop)


def credential(fields: Fields) -> list[tuple[bytes, bytes]]:
    """The lines that say who asks, in the order of `CREDENTIALS`; every line of a repeated one."""
    return [(name, value) for name in CREDENTIALS for value in values(fields, name)]


def token(fields: Fields) -> bytes | None:
    """The secret of a credential: a bearer token or an API key, the first there is."""
    for name in (b"authorization", b"api-key", b"x-api-key"):
        value = first(fields, name)
        if value is not None:
            scheme, _, rest = value.strip().partition(b" ")
            return rest.strip() if rest and scheme.lower() == b"bearer" else value.strip()
    return None


def account(fields: Fields) -> list[tuple[bytes, bytes]]:
    """The lines that say for which account the credential is used."""
    return [line for line in credential(fields) if line[0] in (b"openai-organization", b"openai-project")]


def is_keyed(name: bytes) -> bool:
    """Whether a request field (lower case) is part of the key."""
    return not (
        name in UNKEYED
        or name in HOP_BY_HOP
        or name in CREDENTIALS
        or name in CONTROLS
        or name.startswith(UNKEYED_PREFIXES)
    )


STICKINESS = re.compile(
    rb"(?:__cf_bm|__cflb|_cfuvid|cf_clearance|AWSALB(?:CORS|TG|TGCORS|APP-\d)?|AWSELB(?:CORS)?|GCLB|ARRAffinity(?:SameSite)?)"
    rb"\s*="
)
"""Cookies of balancers in between, which clients send back: they say which machine, not who or what."""


def keyed(fields: Fields, volatile: frozenset[bytes] = frozenset()) -> list[tuple[bytes, bytes]]:
    """The request fields that are part of the key, lower-cased and sorted (order among equal names kept).

    `volatile`: names (lower case) that the operator takes out beside `UNKEYED`.
    """
    lines = [(name.lower(), _telling(name.lower(), value)) for name, value in end_to_end(fields)]
    kept = [(n, v) for n, v in lines if v is not None and n not in volatile and is_keyed(n)]
    return sorted(kept, key=lambda line: line[0])


def _telling(name: bytes, value: bytes) -> bytes | None:
    """What of a field's value tells two questions apart; None if nothing does."""
    if name == b"cookie":
        cookies = [c for c in (part.strip() for part in value.split(b";")) if c and not STICKINESS.match(c)]
        return b"; ".join(cookies) or None
    return None if name == b"accept-language" and value == b"*" else value


def accepts_coding(fields: Fields, coding: bytes) -> bool:
    """Whether ``Accept-Encoding`` names `coding` (or ``*``) with a weight above zero (RFC 9110 section 12.5.3).

    A request without the field counts as one that wants the plain form: that is what every client can read.
    """
    wild = False
    for member in tokens(fields, b"accept-encoding"):
        name, _, parameters = member.partition(b";")
        refused = _ZERO_WEIGHT.fullmatch(parameters) is not None
        if name.strip().removeprefix(b"x-") == coding.removeprefix(b"x-"):
            return not refused
        if name.strip() == b"*":
            wild = not refused
    return wild


def render(fields: Fields) -> bytes:
    """The lines as they stand on the wire, each ended by CRLF."""
    return b"".join([b"%b: %b\r\n" % line for line in fields])
