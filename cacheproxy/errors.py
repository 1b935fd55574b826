"""The exception tree. Each error that a caller can meet knows its HTTP status and its code (CONTRACT: the error form).

`Trouble` is what a cache part raises; it is forgiven in one place (engine/guard.py) and never reaches a caller.
"""

from traceback import walk_tb


class CacheproxyError(Exception):
    """Anything of ours."""


class ConfigurationError(CacheproxyError):
    """The configuration cannot be used; the message says which key and what to do."""


class Trouble(CacheproxyError):
    """A cache part failed. Costs at most a miss. `kind`: in what way, one word of a closed list."""

    def __init__(self, message: str, kind: str = "other") -> None:
        super().__init__(message)
        self.kind = kind


class AnswerError(CacheproxyError):
    """An error that is answered to the caller in OpenAI form. Messages carry no part of a request's content."""

    status = 500
    code = "internal_error"
    kind = "server_error"
    retry: bool | None = None
    retry_after: int | None = None

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class _RequestError(AnswerError):
    kind = "invalid_request_error"
    retry = False


class InvalidJson(_RequestError):
    status, code = 400, "invalid_json"


class InvalidHeader(_RequestError):
    status, code = 400, "invalid_header"


class InvalidRequest(_RequestError):
    """The HTTP message itself is not acceptable."""

    status, code = 400, "invalid_header"


class RequestTimeout(AnswerError):
    """The client did not send its request in time. It may try again, as OpenAI's clients do at a 408."""

    status, code, kind = 408, "request_timeout", "invalid_request_error"


class RequestTooLarge(_RequestError):
    status, code = 413, "request_too_large"


class UnsupportedEncoding(_RequestError):
    """The body is not of the content coding that it claims."""

    status, code = 415, "unsupported_encoding"


class CacheMiss(AnswerError):
    status, code, kind, retry = 504, "cache_miss", "cache_error", False


class Draining(AnswerError):
    status, code, kind, retry, retry_after = 503, "draining", "server_error", True, 1


class Refused(AnswerError):
    """The request was not let through to a backend now. Another try, `retry_after` seconds later, may be."""

    kind, retry = "server_error", True

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class QueueFull(Refused):
    status, code, kind = 429, "queue_full", "rate_limit_error"


class Shed(Refused):
    """Less urgent work is not taken while the backend is overloaded."""

    status, code, kind = 429, "shed", "rate_limit_error"


class QueueTimeout(Refused):
    status, code = 503, "queue_timeout"


class CircuitOpen(Refused):
    """No backend is asked now, since none has answered lately."""

    status, code = 503, "circuit_open"


class RateLimited(Refused):
    """The key has used up what it may in this window. `fields`: header lines that say how it stands."""

    status, code = 429, "rate_limit_exceeded"

    def __init__(  # with defaults: it is copied for each who waits
        self, message: str, retry_after: int = 1, kind: str = "requests", fields: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        super().__init__(message, retry_after)
        self.kind = kind
        self.fields = fields


class AnsweredMeanwhile(AnswerError):
    """While the request waited for its turn its answer has been stored. Never told to a caller."""

    status, code, retry, retry_after = 503, "answered_meanwhile", True, 1


class UpstreamUnreachable(AnswerError):
    """No backend took the request, or the one that did broke off before its answer began."""

    status, code, kind = 502, "upstream_unreachable", "upstream_error"


class UpstreamTimeout(AnswerError):
    status, code, kind = 504, "upstream_timeout", "upstream_error"


class UpstreamCut(CacheproxyError):
    """The backend's answer broke off after it had begun; the caller's stream has to break off too."""


def place_of(error: BaseException) -> str:
    """What failed and where, for a log: the lines of the code that `error` came through, and its kind. Its message is
    left out, since that may carry something of a request."""
    frames = [(frame.f_globals.get("__name__", "?"), line) for frame, line in walk_tb(error.__traceback__)]
    return " > ".join([*(f"{module}:{line}" for module, line in frames[-6:]), type(error).__name__])
