"""How a request ended, and every word for why: one closed list.

A `Reason` is at once an enum member, a metric label, the value of ``X-Cache-Reason`` and a row of
``docs/reasons.md``. Nothing in the proxy may say "no" without one of these.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum

CACHE_NAME = "cacheproxy"


class Source(StrEnum):
    """Where the answer came from. The values are those of ``X-Cache``."""

    HIT = "HIT"
    STALE = "STALE"
    MISS = "MISS"
    BYPASS = "BYPASS"
    SHADOW = "SHADOW"


class Forward(StrEnum):
    """Why a request went to the backend: the ``fwd`` values of RFC 9211 section 2.2 in use here."""

    BYPASS = "bypass"
    MISS = "miss"
    STALE = "stale"
    REQUEST = "request"
    PARTIAL = "partial"


class Reason(Enum):
    """Why the cache did not answer, or why an answer was not kept: (word, explanation)."""

    # The cache was not asked at all.
    UNCACHEABLE_PATH = ("uncacheable_path", "This method and path is not one whose answers are cached.")
    CACHE_OFF = ("cache_off", "The exact layer is switched off for this request (`exact.mode` or a rule).")
    NOT_OPTED_IN = (
        "not_opted_in",
        "The exact layer serves only requests that ask for it (`opt-in`), and this one has no cache control of ours.",
    )
    NO_STORE = ("no_store", "The request says `no-store`: neither read nor written.")
    ENCODED_REQUEST = ("encoded_request", "The request body has a `Content-Encoding`; it passes as it is.")
    UNKEYABLE = (
        "unkeyable",
        "Legal JSON that cannot be keyed without risk: duplicate names, integers beyond 64 bits, lone surrogates, "
        "`NaN`, a nesting too deep, not an object, or `stream` that is not a boolean.",
    )
    STREAM_OPTIONS = (
        "stream_options",
        "The request asks for stream details that a replay could not give (`continuous_usage_stats`).",
    )
    STATEFUL = (
        "stateful",
        "The request refers to something the backend keeps (`previous_response_id`, `conversation`, a stored prompt, "
        "an item by reference) or runs in the background: the same words may have another answer later.",
    )
    UNNAMED_DEPENDENCY = (
        "unnamed_dependency",
        "It rests on more labels or knowledge bases than are kept with an answer, or on some that cannot be read: a "
        "purge by them would miss it.",
    )
    # The cache was asked and had nothing to serve, or was not to serve it.
    ABSENT = ("absent", "Nothing is stored for this request.")
    EXPIRED = ("expired", "The stored answer is past its lifetime.")
    TOO_OLD = ("too_old", "The stored answer is older than the request's `max-age` or `min-fresh` allows.")
    NO_CACHE = ("no_cache", "The request says `no-cache`: a new answer is fetched and stored.")
    WRITE_ONLY = ("write_only", "Answers are kept for this request but not served (`write-only`).")
    SHADOW = ("shadow", "A stored answer was found and compared with the backend's, but not served (`shadow`).")
    REFRESHED = ("refreshed", "An answer was served and a new one is being fetched in the background.")
    BACKEND_FAILED = ("backend_failed", "The backend failed, and a stored answer was allowed in its place.")
    OVERLOADED = (
        "overloaded", "There was no room at the backend, and a stored answer was allowed in place of a refusal.",
    )  # fmt: skip
    RESUMED = ("resumed", "The rest of a stream that was cut off, after the event that the request names.")
    PARTLY_STORED = ("partly_stored", "Some inputs of this batch were stored; the backend was asked for the others.")
    USAGE_MISSING = ("usage_missing", "The stored stream has no token usage, and this request asks for it.")
    ONE_FORM = (
        "one_form",
        "The stored answer does not say for certain what it would be in the form that this request wants, JSON or a "
        "stream.",
    )
    UNPROVEN_CREDENTIAL = (
        "unproven_credential",
        "The backend has not accepted this credential lately, so nothing is served to it from the cache.",
    )
    NOT_A_QUESTION = (
        "not_a_question",
        "Nothing is stored for this request, and it has no question that another could match by meaning: not only "
        "words, not from the user last, tools, several choices, log probabilities, or an answer that must fit a form.",
    )
    EMPTY_QUESTION = ("empty_question", "Nothing is stored for this request, and its last message has no words.")
    TOO_LONG_QUESTION = (
        "too_long_question", "Nothing is stored for this request, and its question is longer than the embedder reads.",
    )  # fmt: skip
    UNKNOWN_WORDS = (
        "unknown_words", "Nothing is stored for this request, and the embedder does not know its words.",
    )  # fmt: skip
    NOTHING_NEAR = ("nothing_near", "Nothing is stored for this request, nor for a question that is near enough.")
    UNLIKE = (
        "unlike",
        "Near questions were found, and each differs from this one in something that matters "
        "(`cacheproxy_unlike_total{guard}`).",
    )
    UNVERIFIED = (
        "unverified", "A like question was found, but a second opinion does not hold it for the same one.",
    )  # fmt: skip
    NOT_CONFIRMED = (
        "not_confirmed", "The answer to a like question is another credential's, and too few were told the same.",
    )  # fmt: skip
    EMBEDDER_BUSY = (
        "embedder_busy", "Nothing is stored for this request, and too many questions are being embedded already.",
    )  # fmt: skip
    SEMANTIC_LOADING = (
        "semantic_loading", "Nothing is stored for this request, and the embedding model is not loaded yet.",
    )  # fmt: skip
    SEMANTIC_SHADOW = (
        "semantic_shadow", "A like question was found and counted, but its answer not served (`semantic.mode`).",
    )  # fmt: skip
    SEMANTIC_TROUBLE = (
        "semantic_trouble", "The embedder, the vector index or the verifier failed or was too slow.",
    )  # fmt: skip
    STORE_TROUBLE = ("store_trouble", "The store failed or was too slow; the request went on without it.")
    # The backend answered, and the answer was not kept.
    READ_ONLY = ("read_only", "Stored answers are served for this request, new ones are not kept (`read-only`).")
    STATUS = ("status", "The backend's status is not 200.")
    CONTENT_TYPE = ("content_type", "The answer is neither JSON nor an event stream.")
    CONTENT_ENCODING = ("content_encoding", "The answer has a content coding that is not understood.")
    MODE_MISMATCH = ("mode_mismatch", "A stream was asked and JSON came, or the reverse.")
    RESPONSE_NO_STORE = ("response_no_store", "The backend's answer says `Cache-Control: no-store`.")
    VARY = ("vary", "The backend's `Vary` names a header that is not part of the key.")
    INCOMPLETE = ("incomplete", "The body ended before its own framing said so.")
    NO_TERMINAL_EVENT = (
        "no_terminal_event", "The stream ended without its terminal event (`[DONE]`, `response.completed`).",
    )  # fmt: skip
    UNFINISHED_CHOICE = ("unfinished_choice", "A choice is missing or has no finish reason.")
    FINISH_REASON = ("finish_reason", "A choice finished with something other than `stop` or `tool_calls`.")
    IN_BAND_ERROR = ("in_band_error", "The answer carries an error inside.")
    MALFORMED = ("malformed", "The answer is not the JSON that its endpoint gives.")
    EMPTY = ("empty", "No choice has text or a tool call.")
    SIDE_EFFECTS = (
        "side_effects",
        "The answer used a tool that the backend ran itself; what that did or saw is not repeated by a replay.",
    )
    AUDIO = ("audio", "The answer carries audio, which is passed on but not kept.")
    TOO_LARGE = (
        "too_large", "The answer is larger than `limits.answer_bytes`, or its entry than the 4 MiB of one in Redis.",
    )  # fmt: skip
    RECORDING_BUDGET = ("recording_budget", "Answers being recorded hold `limits.recording_bytes` already.")
    SAME_ANSWER = ("same_answer", "One of the answers kept for this request says the same (`exact.variants`).")
    ZERO_TTL = ("zero_ttl", "The lifetime in force for this answer is 0.")
    PURGED = ("purged", "A purge that means this answer was acknowledged while it was on its way.")
    OTHER_VERSION = ("other_version", "The answer states a version of a knowledge base that is not the current one.")
    CLIENT_GONE = ("client_gone", "The caller left before the answer was complete.")

    def __init__(self, word: str, explanation: str) -> None:
        self.word = word
        self.explanation = explanation


@dataclass(slots=True)
class Outcome:
    """What is known of one request when its response head is written.

    `ttl` is whole seconds left (negative: seconds past the lifetime); `age` whole seconds. `likeness`: of a hit by
    meaning, the cosine similarity of the two questions and what it had to reach. `collapsed`: the answer was another
    caller's, still running (RFC 9211 section 2.5).
    """

    source: Source
    reason: Reason | None = None
    forward: Forward | None = None
    stored: bool = False
    ttl: int = 0
    age: int = 0
    entry_id: str | None = None
    likeness: tuple[float, float] | None = None
    collapsed: bool = False

    @property
    def tier(self) -> str:
        """Which layer a hit is of."""
        return "exact" if self.likeness is None else "semantic"


def cache_status(outcome: Outcome) -> str:
    """The ``Cache-Status`` member for `outcome` (RFC 9211 section 2)."""
    if outcome.source in (Source.HIT, Source.STALE):
        collapsed = "; collapsed" if outcome.collapsed else ""
        return f"{CACHE_NAME}; hit; ttl={outcome.ttl}{collapsed}; detail={outcome.tier}"
    text = f"{CACHE_NAME}; fwd={(outcome.forward or Forward.BYPASS).value}"
    if outcome.stored:
        text += "; stored"
    if outcome.collapsed:
        text += "; collapsed"
    if outcome.reason is not None and outcome.reason is not Reason.ABSENT:
        text += f"; detail={outcome.reason.word}"
    return text
