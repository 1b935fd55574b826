"""The rows of the table of rules, as they are written."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from cacheproxy.core.rules import Mode, Share
from cacheproxy.schema.kinds import Duration, Names, Switch, read_switch
from cacheproxy.schema.knowledge import ExtractSettings
from cacheproxy.schema.model import Model
from cacheproxy.schema.prefix import PrefixRowSettings
from cacheproxy.schema.rates import RatesRowSettings


class MatchSettings(Model):
    path: Names = ()
    """Patterns of paths, such as `/v1/embeddings`."""
    model: Names = ()
    """Patterns of model names."""
    header: dict[str, str] = Field(default_factory=dict)
    """Header names and patterns of their values; all of them must match."""
    tag: Names = ()
    """Patterns of labels that the request carries (`X-Cache-Tags`)."""
    key_group: Names = ()
    """Patterns of names of `access.key_groups`."""
    service_tier: Names = ()
    """Patterns of the body's `service_tier`."""
    metadata: dict[str, str] = Field(default_factory=dict)
    """Names of the body's `metadata` and patterns of their values; all of them must match."""


class SettleSettings(Model):
    exact: Annotated[Mode | None, BeforeValidator(read_switch)] = None
    """The exact layer's mode for these requests (as `exact.mode`)."""
    semantic: Switch | None = None
    """Whether the semantic layer may answer them; takes effect where there is one."""
    ttl: Duration | None = None
    """The lifetime of their answers."""
    threshold: float | None = Field(default=None, ge=0, le=1)
    """The similarity from which on the semantic layer may answer them."""
    shed_threshold: float | None = Field(default=None, ge=0, le=1)
    """As `admission.shed_threshold`."""
    keywords: float | None = Field(default=None, ge=0, le=1000)
    """How much their words count in the order of candidates (as `semantic.keywords`)."""
    verifier: Switch | None = None
    """Whether a second opinion is asked for (as `semantic.verifier`; the classifier's where that is off)."""
    kb: Names = ()
    """Knowledge bases that their answers depend on."""
    tags: Names = ()
    """Labels that their answers are kept with."""
    extract: tuple[ExtractSettings, ...] = ()
    """Where they name what their answers rest on, beside `kb.extract`."""
    priority: Literal["P0", "P1", "P2"] | None = None
    """The best priority they may have, and the one of those that say nothing of it."""
    defer: Switch | None = None
    """Whether those of P2 that would be refused are kept and asked later, though they do not say `Prefer:
    respond-async`."""
    scope: Share | None = None
    """Who shares their answers (as `access.scope`)."""
    variants: int | None = Field(default=None, ge=1, le=100)
    """How many different answers are kept (as `exact.variants`)."""
    prefix: PrefixRowSettings = PrefixRowSettings()
    rates: RatesRowSettings = RatesRowSettings()


class RuleSettings(Model):
    match: MatchSettings = MatchSettings()
    """Which requests: every part that is given must match, of a list one pattern."""
    set: SettleSettings = SettleSettings()
    """What holds for them. For each setting the first matching rule wins; `kb`, `tags` and `extract` add up."""
