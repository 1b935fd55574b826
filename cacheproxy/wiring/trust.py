"""What keeps answers by meaning true, put together: what operators say, samples, witnesses, the log of near misses."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cacheproxy.engine.comparison import Comparison
from cacheproxy.engine.evidence import Evidence
from cacheproxy.engine.feedback import Feedback
from cacheproxy.engine.guard import GuardedEmbedder
from cacheproxy.engine.nearly import NearMisses
from cacheproxy.engine.promotion import Promotion
from cacheproxy.engine.purge import Purge
from cacheproxy.engine.sampler import Sampling
from cacheproxy.engine.truth import Truth
from cacheproxy.engine.witnesses import GuardedWitnesses
from cacheproxy.ports import Clock, Quarantine
from cacheproxy.schema import Settings
from cacheproxy.stores.lines import Lines
from cacheproxy.stores.quarantine import MemoryQuarantine
from cacheproxy.stores.quarantine_file import FileQuarantine
from cacheproxy.stores.witnesses import LocalWitnesses
from cacheproxy.telemetry import Telemetry
from cacheproxy.wiring.opinions import Opinions
from cacheproxy.wiring.storage import Storage

QUARANTINE_FILE = "quarantine.sqlite3"
USUAL_ERROR = 0.02
"""The share of wrong answers that is tolerated where the configuration states none."""


def feedback(settings: Settings, storage: Storage, purge: Purge, telemetry: Telemetry) -> Feedback:
    """What heeds what operators say."""
    deadline = settings.store.deadline
    quarantine: Quarantine
    if storage.shared is not None:
        quarantine, deadline = storage.shared.quarantine, settings.redis.timeout
    elif settings.store.data_dir == "none":
        quarantine = MemoryQuarantine()
    else:
        quarantine = FileQuarantine(Path(settings.store.data_dir) / QUARANTINE_FILE)
    made = Feedback(quarantine=quarantine, purge=purge, journal=telemetry, secret=storage.secret, deadline=deadline)
    telemetry.left_alone(made.breaker.name, lambda: not made.breaker.closed)
    return made


@dataclass(frozen=True, slots=True)
class Trust:
    """The parts. `sampling`: how often the backend is asked, for whom `running` tells how much else is going on."""

    truth: Truth
    evidence: Evidence
    promotion: Promotion
    witnesses: GuardedWitnesses
    near_misses: NearMisses | None
    lines: Lines | None
    sampling: Sampling
    opinions: Opinions
    running: Callable[[], int]

    def rekey(self, secret: bytes) -> None:
        """From now on what stands for texts is made with `secret`."""
        if self.near_misses is not None:
            self.near_misses.rekey(secret)

    async def close(self) -> None:
        """Let go."""
        await self.opinions.close()
        await self.witnesses.close()
        if self.lines is not None:
            await self.lines.close()


def trust(  # noqa: PLR0913 - its parts, by name
    settings: Settings, storage: Storage, embedder: GuardedEmbedder, clock: Clock, telemetry: Telemetry,
    running: Callable[[], int],
) -> Trust:  # fmt: skip
    """The parts that the settings ask for."""
    told = settings.semantic
    shared = storage.shared
    witnesses = GuardedWitnesses(
        LocalWitnesses(clock) if shared is None else shared.witnesses,
        settings.store.deadline if shared is None else settings.redis.timeout, telemetry,
    )  # fmt: skip
    for breaker in (witnesses.reads, witnesses.writes):
        telemetry.left_alone(breaker.name, lambda breaker=breaker: not breaker.closed)  # type: ignore[misc]
    promotion = Promotion(witnesses, telemetry, told.promote_after)
    lines = near_misses = None
    if told.near_miss_log is not None:
        lines = Lines(Path(told.near_miss_log), told.near_miss_bytes)
        near_misses = NearMisses(lines.write, clock, storage.secret, texts=told.near_miss_texts)
    truth = Truth(telemetry, clock, told.max_error or USUAL_ERROR, told.threshold)
    evidence = Evidence(Comparison(embedder), truth, promotion, near_misses)
    sampling = Sampling(told.sample, told.sample_calls, told.sample_tokens)
    opinions = Opinions(settings, telemetry)
    _publish(truth, telemetry)
    return Trust(truth, evidence, promotion, witnesses, near_misses, lines, sampling, opinions, running)


def _publish(truth: Truth, telemetry: Telemetry) -> None:
    gauge = telemetry.gauge
    gauge(
        "semantic_false_hit_rate", "The share of wrong answers among those by meaning, as samples tell.",
        lambda: truth.estimate.rate,
    )  # fmt: skip
    gauge("semantic_false_hit_rate_low", "Its lower bound (95 %).", lambda: truth.estimate.low)
    gauge("semantic_false_hit_rate_high", "Its upper bound (95 %).", lambda: truth.estimate.high)
    gauge("semantic_tightened", "By how much thresholds are raised because of it.", lambda: truth.tightened)
    telemetry.section("semantic", truth.summary)
