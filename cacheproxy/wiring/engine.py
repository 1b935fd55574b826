"""The engine, put together from settings and from the parts that reach outside."""

from dataclasses import dataclass

from cacheproxy.core import policy
from cacheproxy.core.affinity import Policy
from cacheproxy.core.prefix import NONCES
from cacheproxy.core.rules import Opinion, globs
from cacheproxy.engine.asker import Asker
from cacheproxy.engine.authority import Authority, Probe
from cacheproxy.engine.batch import Batch
from cacheproxy.engine.binder import Binder
from cacheproxy.engine.delivery import Delivery
from cacheproxy.engine.exchange import Exchange
from cacheproxy.engine.families import Families
from cacheproxy.engine.feedback import Feedback
from cacheproxy.engine.fill import Fill
from cacheproxy.engine.flight import Flights
from cacheproxy.engine.hints import Hints
from cacheproxy.engine.keeper import Keeper
from cacheproxy.engine.knowledge import Knowledge
from cacheproxy.engine.ledger import Ledger
from cacheproxy.engine.pipeline import Pipeline, Streaming
from cacheproxy.engine.producer import Producer
from cacheproxy.engine.rates import Rates
from cacheproxy.engine.record import Budget
from cacheproxy.engine.refresh import Refresher
from cacheproxy.engine.sampler import Sampler
from cacheproxy.engine.savings import Savings
from cacheproxy.engine.scrutiny import Scrutiny
from cacheproxy.engine.semantic import Meaning, Semantic
from cacheproxy.engine.sender import Sender
from cacheproxy.engine.served import Voice
from cacheproxy.engine.serving import Serving
from cacheproxy.engine.shelf import Shelf
from cacheproxy.engine.twins import Twins
from cacheproxy.engine.variants import Variants
from cacheproxy.ports import Backend, Clock, Journal
from cacheproxy.schema import Settings
from cacheproxy.wiring import terms
from cacheproxy.wiring.trust import Trust


@dataclass(frozen=True, slots=True)
class Engine:
    """What answers requests, and the parts of it that others look at."""

    pipeline: Pipeline
    binder: Binder
    voice: Voice
    budget: Budget
    fill: Fill
    flights: Flights
    refresher: Refresher
    savings: Savings
    families: Families
    hints: Hints
    semantic: Semantic | None

    def rekey(self, secret: bytes) -> None:
        """From now on keys are made with `secret`."""
        self.binder.rekey(secret)
        self.hints.rekey(secret)


def build(  # noqa: PLR0913 - the parts of the house, by name
    settings: Settings, *, shelf: Shelf, backend: Backend, probe: Probe, clock: Clock,
    journal: Journal, secret: bytes, realm: bytes, meaning: Meaning | None = None,
    knowledge: Knowledge | None = None, feedback: Feedback | None = None, trust: Trust | None = None,
    rates: Rates | None = None,
) -> Engine:  # fmt: skip
    """An engine over these parts."""
    voice = Voice(journal, hide_hits=settings.access.hide_hits)
    budget, fill = Budget(settings.limits.recording_bytes), Fill(journal)
    savings = Savings(journal, terms.prices(settings), settings.savings.currency)
    binder = Binder(secret, terms.terms(settings, realm))
    authority = Authority(probe, clock, settings.access.grant_ttl, settings.access.grace)
    variants, families = Variants(clock), Families(journal, names=(*NONCES, *settings.prefix.nonce_lines))
    hints = terms.hints(settings, secret)
    sender = _sender(settings, backend, hints, rates)
    semantic = scrutiny = twins = None
    if meaning is not None and trust is not None:
        matching = terms.matching(settings)
        verdicts = trust.opinions.verdicts(backend, authority)
        scrutiny = Scrutiny(
            shelf=shelf, journal=journal, clock=clock, guards=matching.guards, feedback=feedback, verdicts=verdicts,
            promotion=trust.promotion, near_misses=trust.near_misses,
            verifies=settings.semantic.verifier is not Opinion.OFF,
        )  # fmt: skip
        semantic = Semantic(
            binder=binder, meaning=meaning, scrutiny=scrutiny, truth=trust.truth, evidence=trust.evidence, fill=fill,
            journal=journal, clock=clock, matching=matching,
        )  # fmt: skip
    keeper = Keeper(
        shelf=shelf, semantic=semantic, knowledge=knowledge, journal=journal, clock=clock,
        keeping=terms.keeping(settings), budget=budget, variants=variants,
    )  # fmt: skip
    ledger = Ledger(families, journal, clock, rates)
    producer = Producer(sender=sender, keeper=keeper, authority=authority, ledger=ledger, journal=journal, clock=clock)
    flights = _flights(settings, producer, keeper, binder, budget, journal, clock)
    if semantic is not None and scrutiny is not None and settings.flight.semantic == "on":
        twins = Twins(flights=flights, semantic=semantic, scrutiny=scrutiny, journal=journal)
    delivery = Delivery(voice=voice, journal=journal, clock=clock, stall=settings.stream.stall, rates=rates)
    exchange = Exchange(
        sender=sender, flights=flights, delivery=delivery, authority=authority, ledger=ledger, journal=journal
    )  # fmt: skip
    refresher = Refresher(
        sender=sender, keeper=keeper, authority=authority, fill=fill, ledger=ledger, journal=journal, clock=clock
    )
    serving = Serving(
        voice=voice, savings=savings, journal=journal, clock=clock, pace=terms.pace(settings),
        identify=binder.identify,
    )  # fmt: skip
    batch = Batch(
        shelf=shelf, authority=authority, exchange=exchange, sender=sender, keeper=keeper, serving=serving,
        ledger=ledger, clock=clock, rates=rates,
    )  # fmt: skip
    asker = Asker(sender=sender, keeper=keeper, authority=authority, ledger=ledger, clock=clock)
    sampler = None if trust is None else _sampler(trust, asker, fill, journal, clock)
    pipeline = Pipeline(
        binder=binder, shelf=shelf, authority=authority, exchange=exchange, refresher=refresher, serving=serving,
        semantic=semantic, twins=twins, sampler=sampler, batch=batch, variants=variants, clock=clock,
        lasting=terms.lasting(settings), streaming=Streaming(settings.flight.event_ids, settings.stream.heartbeat),
    )  # fmt: skip
    return Engine(pipeline, binder, voice, budget, fill, flights, refresher, savings, families, hints, semantic)


def _sampler(trust: Trust, asker: Asker, fill: Fill, journal: Journal, clock: Clock) -> Sampler:
    return Sampler(
        asker=asker, evidence=trust.evidence, fill=fill, journal=journal, clock=clock, sampling=trust.sampling,
        running=trust.running, promotion=trust.promotion,
    )  # fmt: skip


def _flights(  # noqa: PLR0913 - its parts, by name
    settings: Settings, producer: Producer, keeper: Keeper, binder: Binder, budget: Budget, journal: Journal,
    clock: Clock,
) -> Flights:  # fmt: skip
    return Flights(
        producer=producer, journal=journal, clock=clock, budget=budget, terms=terms.flights(settings),
        identify=binder.identify, stands=keeper.stands,
    )  # fmt: skip


def _sender(settings: Settings, backend: Backend, hints: Hints, rates: Rates | None) -> Sender:
    routed = len(settings.upstreams) > 1 and settings.prefix.routing is Policy.AFFINITY
    free = globs(settings.admission.free_paths)
    return Sender(
        backend, ask_usage=settings.stream.ask_usage, hints=hints, routed=routed,
        gated=lambda method, target: policy.is_work(method, target, free), rates=rates,
    )  # fmt: skip
