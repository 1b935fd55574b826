"""Settings -> what the engine is told of them."""

from cacheproxy.core import canonical, key, prefix, rules
from cacheproxy.core.expressions import compiled
from cacheproxy.core.extraction import Place
from cacheproxy.core.freshness import Allowance
from cacheproxy.core.likeness import Guard
from cacheproxy.core.rules import Match, Rule, Settled
from cacheproxy.core.texts import Pattern
from cacheproxy.engine.binder import Terms
from cacheproxy.engine.flight import Terms as Flying
from cacheproxy.engine.hints import Hints, Scheduler
from cacheproxy.engine.keeper import Keeping
from cacheproxy.engine.pace import Pace
from cacheproxy.engine.pipeline import Lasting
from cacheproxy.engine.savings import Price
from cacheproxy.engine.semantic import Matching
from cacheproxy.schema import Settings
from cacheproxy.schema.knowledge import ExtractSettings
from cacheproxy.schema.prefix import PrefixRowSettings
from cacheproxy.schema.rules import RuleSettings
from cacheproxy.wiring.rates import limits


def terms(settings: Settings, realm: bytes) -> Terms:
    """What holds for the binding of requests."""
    exact = settings.exact
    paths = [path for text in (*exact.ignore_fields, *exact.volatile_fields) if (path := canonical.pointer(text))]
    return Terms(
        realm=realm,
        mode=exact.mode,
        share=settings.access.scope,
        litellm_body=settings.compat.litellm_body,
        ignored=canonical.Ignored(
            frozenset(path[0] for path in paths if len(path) == 1), tuple(path for path in paths if len(path) > 1)
        ),
        volatile_headers=frozenset(name.lower().encode("latin-1", "replace") for name in exact.volatile_headers),
        rules=tuple(map(_rule, settings.rules)),
        key_groups={key.digest(k.get_secret_value()): g.name for g in settings.access.key_groups for k in g.keys},
        variants=exact.variants,
        body_bytes=settings.limits.body_bytes,
        prefix_rules=prefix_rules(settings) if settings.prefix.mode else None,
        extract=_places(settings.kb.extract),
        limits=limits(settings.rates),
        extract_bytes=settings.kb.extract_bytes,
    )


def _places(rows: tuple[ExtractSettings, ...]) -> tuple[Place, ...]:
    """Where names are looked for."""
    found = []
    for row in rows:
        regex = None if row.pattern is None else compiled(row.pattern)
        if not isinstance(regex, str):  # what is no expression was refused when it was read
            found.append(Place(row.into, canonical.pointer(row.pointer or "") or (), regex))
    return tuple(found)


def prefix_rules(settings: Settings) -> prefix.Rules:
    """Which rules of the prefix layer are in force."""
    told = settings.prefix.rules
    return prefix.Rules(
        tools=told.tools, tool_noise=told.tool_noise, newlines=told.newlines, unicode=told.unicode, nonces=told.nonces,
        clock=told.clock, unit=told.clock_unit, ids=told.ids, patterns=_patterns(settings),
        nonce_names=(*prefix.NONCES, *settings.prefix.nonce_lines),
    )  # fmt: skip


def _patterns(settings: Settings) -> tuple[Pattern, ...]:
    rows = [(compiled(row.pattern), row) for row in settings.prefix.rules.patterns]
    return tuple(Pattern(regex, row.action, row.text) for regex, row in rows if not isinstance(regex, str))


def _rule(row: RuleSettings) -> Rule:
    match, told = row.match, row.set
    header = tuple((name.lower().encode(), rules.globs([pattern])[0]) for name, pattern in match.header.items())
    return Rule(
        Match(
            rules.globs(match.path), rules.globs(match.model), header, rules.globs(match.tag),
            rules.globs(match.key_group), rules.globs(match.service_tier),
            tuple((name, rules.globs([pattern])[0]) for name, pattern in match.metadata.items()),
        ),
        Settled(
            exact=told.exact, semantic=told.semantic, ttl=told.ttl, threshold=told.threshold,
            shed_threshold=told.shed_threshold, keywords=told.keywords, verifier=told.verifier,
            priority=None if told.priority is None else int(told.priority[1]), defer=told.defer,
            scope=told.scope,
            variants=told.variants, requests_per_minute=told.rates.requests_per_minute,
            tokens_per_minute=told.rates.tokens_per_minute, kb=told.kb, tags=told.tags, prefix=_prefix_row(told.prefix),
            extract=_places(told.extract),
        ),
    )  # fmt: skip


def _prefix_row(told: PrefixRowSettings) -> tuple[tuple[str, object], ...]:
    """What a row says of the prefix layer, by the names of `prefix.Rules`."""
    said = {name: value for name in PrefixRowSettings.model_fields if (value := getattr(told, name)) is not None}
    if "clock_unit" in said:
        said["unit"] = said.pop("clock_unit")
    if said.pop("patterns", True) is False:
        said["patterns"] = ()
    return tuple(said.items())


def hints(settings: Settings, secret: bytes) -> Hints:
    """What backends are told for their own cache."""
    told = settings.prefix.hints
    return Hints(
        secret, told.prompt_cache_key, told.cache_salt, told.cache_prompt, Scheduler(settings.admission.forward)
    )  # fmt: skip


def matching(settings: Settings) -> Matching:
    """What holds for answers by meaning."""
    told = settings.semantic
    return Matching(told.mode, told.threshold, frozenset(map(Guard, told.guards)), told.candidates, told.keywords)


def keeping(settings: Settings) -> Keeping:
    """What holds for keeping answers."""
    exact = settings.exact
    longest = max(exact.keep_stale, exact.stale_while_revalidate, exact.stale_if_error)
    return Keeping(
        exact.ttl, exact.max_ttl, exact.models_ttl, exact.negative_ttl, longest, exact.honour_max_age,
        settings.limits.answer_bytes,
    )  # fmt: skip


def flights(settings: Settings) -> Flying:
    """What holds for running answers."""
    told = settings.flight
    return Flying(told.mode == "on", told.abandon == "finish", told.bytes, told.resume_window)


def lasting(settings: Settings) -> Lasting:
    """What holds for answers near and past the end of their lifetime."""
    exact = settings.exact
    return Lasting(
        Allowance(exact.stale_while_revalidate, exact.stale_if_error), exact.refresh, settings.admission.shed_threshold
    )


def pace(settings: Settings) -> Pace:
    """How streams are replayed."""
    told = settings.replay
    if isinstance(told.pace, float):
        return Pace(rate=told.pace)
    return Pace(recorded=told.pace == "recorded", speed=told.speed)


def prices(settings: Settings) -> list[Price]:
    """What tokens cost."""
    return [Price(price.model, price.prompt, price.completion) for price in settings.savings.prices]
