"""Every metric, once: its name, its labels, its meaning. Labels come from closed or bounded lists only."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from cacheproxy.core.outcome import Outcome, Source

_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)

_EVENTS = {
    "kept": ("cacheproxy_answers_kept", "Answers stored."),
    "background_dropped": ("cacheproxy_background_dropped", "Background work not begun because there was too much."),
    "purged": ("cacheproxy_purged_answers", "Answers that purges removed or made stale."),
    "index_recreated": ("cacheproxy_index_recreated", "Times that the vector index in Redis was lost and made again."),
    "semantic_shadow": (
        "cacheproxy_semantic_shadow",
        "Answers that would have been served by meaning (`semantic.mode`: shadow).",
    ),
    "semantic_promoted": (
        "cacheproxy_semantic_promoted",
        "Answers that enough credentials were told the same as, so that others find them by meaning.",
    ),
    "saved_seconds": ("cacheproxy_saved_seconds", "Backend time not spent: what the answers served had taken."),
    "saved_money": ("cacheproxy_saved_money", "Money not spent, by `savings.prices`, in `savings.currency`."),
}
"""What is counted without labels: by the name it has here, its metric and what that means."""
_LABELLED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "not_kept": ("cacheproxy_answers_not_kept", "Answers not stored, by reason.", ("reason",)),
    "error": ("cacheproxy_errors", "Errors of ours, by code.", ("code",)),
    "trouble": ("cacheproxy_trouble", "Failures of cache parts that were forgiven.", ("part", "kind")),
    "saved_tokens": ("cacheproxy_saved_tokens", "Tokens not computed, prompt and completion.", ("kind",)),
    "shadow": ("cacheproxy_shadow", "Stored answers compared with the backend's new ones (`shadow`).", ("result",)),
    "semantic_looks": (
        "cacheproxy_semantic_looks",
        "Looks for an answer to a like question, by what came of them.",
        ("result",),
    ),
    "semantic_samples": (
        "cacheproxy_semantic_samples",
        "Answers by meaning for which the backend was asked too, by whether it said the same.",
        ("verdict",),
    ),
    "semantic_tightened": (
        "cacheproxy_semantic_tightenings",
        "Times that samples moved the thresholds of answers by meaning, by direction.",
        ("direction",),
    ),
    "feedback": ("cacheproxy_feedback", "Answers that operators called wrong or right.", ("verdict",)),
    "verified": (
        "cacheproxy_semantic_verified",
        "Like questions to which no guard objected, by what the second opinion was.",
        ("opinion",),
    ),
    "judged": (
        "cacheproxy_semantic_judged",
        "Answers of the backend as judge of two questions, by what it said.",
        ("said",),
    ),
    "unlike": ("cacheproxy_unlike", "Near questions that a guard said to be others, by guard.", ("guard",)),
    "knowledge": (
        "cacheproxy_knowledge_versions",
        "Versions of knowledge bases that were told, by what followed.",
        ("course",),
    ),
    "deferred": (
        "cacheproxy_deferred",
        "Requests that were kept to be asked later, by what followed.",
        ("course",),
    ),
    "purge": ("cacheproxy_purges", "Purges carried out, by mode.", ("mode",)),
    "refused": ("cacheproxy_refused", "Requests that were not let through to a backend.", ("code", "priority")),
    "upstream_retries": (
        "cacheproxy_upstream_retries",
        "Requests whose backend could not be connected to, by whether another one was tried.",
        ("result",),
    ),
    "coalesced": (
        "cacheproxy_coalesced",
        "Requests that met a running answer to the same request, by what became of them.",
        ("step",),
    ),
    "flights_shared": (
        "cacheproxy_flights_shared",
        "Answers that replicas shared while they ran, by this one's part in it.",
        ("role",),
    ),
    "stalled": ("cacheproxy_stream_stalls", "Pauses in streams longer than `stream.stall`.", ("origin",)),
    "refresh": ("cacheproxy_refreshes", "Answers fetched anew in the background.", ("result",)),
    "prompt_tokens": (
        "cacheproxy_upstream_prompt_tokens",
        "Tokens of prompts whose backend tells how many of them it had in its prefix cache.",
        ("family", "stabilised"),
    ),
    "cached_tokens": (
        "cacheproxy_upstream_cached_tokens",
        "Those of `cacheproxy_upstream_prompt_tokens_total` that the backend had in its prefix cache.",
        ("family", "stabilised"),
    ),
    "prefix_changed": (
        "cacheproxy_prefix_changes",
        "Requests sent to a backend that a rule of the prefix layer changed, by rule.",
        ("rule",),
    ),
    "divergence": (
        "cacheproxy_prefix_divergences",
        "Requests whose prompt left that of the one before too early, by the rule that would mend it.",
        ("rule",),
    ),
}
"""What is counted by label."""


class Telemetry:
    """The journal that counts (the `Journal` of ports.py)."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self._requests = Counter(
            "cacheproxy_requests", "Requests by where their answer came from and why not from the cache.",
            ("source", "reason", "endpoint"), registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "cacheproxy_request_head_seconds", "Seconds from a request's arrival to the head of its answer.",
            ("source",), registry=registry, buckets=_BUCKETS,
        )  # fmt: skip
        self._left_alone = Gauge(
            "cacheproxy_left_alone", "1 while a cache part is not asked because it failed.", ("part",),
            registry=registry,
        )  # fmt: skip
        self._queues = Gauge(
            "cacheproxy_queue_depth", "Requests that wait for a slot of a backend.", ("priority",), registry=registry
        )
        self._depths: dict[str, Callable[[], int]] = {}
        self._distributions = _distributions(registry)
        self._events = {event: Counter(*told, registry=registry) for event, told in _EVENTS.items()}
        self._labelled = {event: Counter(*told, registry=registry) for event, told in _LABELLED.items()}
        self._children: dict[tuple[str, str, str], Counter] = {}
        self._sources = {source: self._seconds.labels(source.value) for source in Source}
        self._gauges: dict[str, Callable[[], float]] = {}
        self._sections: dict[str, Callable[[], object]] = {}

    def note(self, outcome: Outcome, endpoint: str, seconds: float) -> None:
        reason = outcome.reason.word if outcome.reason is not None else ""
        name = (outcome.source.value, reason, endpoint)
        child = self._children.get(name)
        if child is None:
            child = self._children[name] = self._requests.labels(*name)
        child.inc()
        self._sources[outcome.source].observe(seconds)

    def count(self, event: str, label: str = "") -> None:
        self.add(event, 1, *([label] if label else []))

    def add(self, event: str, amount: float, *labels: str) -> None:
        if labels:
            self._labelled[event].labels(*labels).inc(amount)
        else:
            self._events[event].inc(amount)

    def observe(self, event: str, value: float, *labels: str) -> None:
        self._distributions[event].labels(*labels).observe(value)

    def section(self, name: str, read: Callable[[], object]) -> None:
        """Add what `read` gives to the summary, as `name`."""
        self._sections[name] = read

    def gauge(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """Publish ``cacheproxy_<name>``, read when it is asked for."""
        Gauge(f"cacheproxy_{name}", meaning, registry=self.registry).set_function(read)
        self._gauges[name] = read

    def queue(self, priority: str, read: Callable[[], int]) -> None:
        """Publish how many requests of `priority` wait for a slot."""
        self._queues.labels(priority).set_function(read)
        self._depths[priority] = read

    def left_alone(self, part: str, read: Callable[[], bool]) -> None:
        """Publish whether `part` is not asked now because it failed."""
        self._left_alone.labels(part).set_function(lambda: float(read()))

    def exposition(self) -> bytes:
        """The metrics in the Prometheus text format."""
        return generate_latest(self.registry)

    def summary(self) -> dict[str, object]:
        """The counts as plain data."""
        sources = dict.fromkeys((s.value for s in Source), 0)
        reasons: dict[str, int] = {}
        for sample in next(iter(self._requests.collect())).samples:
            if sample.name.endswith("_total"):
                sources[sample.labels["source"]] += int(sample.value)
                if sample.labels["reason"]:
                    reasons[sample.labels["reason"]] = reasons.get(sample.labels["reason"], 0) + int(sample.value)
        looked = sources["HIT"] + sources["STALE"] + sources["MISS"]
        served = sources["HIT"] + sources["STALE"]
        return {
            "requests": sources,
            "reasons": reasons,
            "not_kept": self._by_label("not_kept", "reason"),
            "hit_rate": served / looked if looked else None,
            "shadow": self._by_label("shadow", "result"),
            "semantic_looks": self._by_label("semantic_looks", "result"),
            "unlike": self._by_label("unlike", "guard"),
            "refreshes": self._by_label("refresh", "result"),
            "queues": {priority: read() for priority, read in self._depths.items()},
            "refused": self._by_label("refused", "code"),
            **{name: read() for name, read in self._gauges.items()},
            **{name: read() for name, read in self._sections.items()},
        }

    def _by_label(self, event: str, label: str) -> dict[str, int]:
        samples = next(iter(self._labelled[event].collect())).samples
        found: dict[str, int] = {}
        for sample in samples:
            if sample.name.endswith("_total"):
                found[sample.labels[label]] = found.get(sample.labels[label], 0) + int(sample.value)
        return found


def _distributions(registry: CollectorRegistry) -> dict[str, Histogram]:
    """What is measured."""
    return {
        "ttft": Histogram(
            "cacheproxy_upstream_ttft_seconds",
            "Seconds from the sending of a request to the first bytes of the backend's stream.",
            ("family",), registry=registry, buckets=_BUCKETS,
        ),
        "queue_wait": Histogram(
            "cacheproxy_queue_wait_seconds", "Seconds that requests waited for a slot of a backend, if they had to.",
            ("priority",), registry=registry, buckets=_BUCKETS,
        ),
        "first_event": Histogram(
            "cacheproxy_stream_first_event_seconds",
            "Seconds from a request's arrival to the first bytes of its stream, by where they came from.",
            ("origin",), registry=registry, buckets=_BUCKETS,
        ),
        "event_pause": Histogram(
            "cacheproxy_stream_pause_seconds",
            "Seconds between bytes of a stream that were handed on one after the other (inter-token latency).",
            ("origin",), registry=registry, buckets=_BUCKETS,
        ),
    }  # fmt: skip
