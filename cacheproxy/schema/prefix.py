"""What the configuration says about the prefix layer."""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from cacheproxy.core.affinity import Policy
from cacheproxy.core.prefix import Clock, Ids, Unit
from cacheproxy.core.texts import Action
from cacheproxy.schema.kinds import Duration, Expression, Names, Switch, read_switch
from cacheproxy.schema.model import Model

_Clock = Annotated[Clock, BeforeValidator(read_switch)]
_Ids = Annotated[Ids, BeforeValidator(read_switch)]


class PatternSettings(Model):
    pattern: Expression
    """A regular expression as RE2 reads it (linear time; no back references)."""
    action: Action
    """`move`: to the end of the last system text; `coarsen`: times to `clock_unit`, or else numbers to their first
    digit; `drop`; `replace`: by `text`."""
    text: str = Field("", max_length=4096)
    """What `replace` puts in its place."""

    @model_validator(mode="after")
    def _text_has_use(self) -> Self:
        if self.text and self.action is not Action.REPLACE:
            raise ValueError("`text` is for the action `replace`")
        return self


class PrefixRulesSettings(Model):
    tools: Switch = True
    """Write tools in one order: tools by name, members of schemas by name; arrays keep their order."""
    newlines: Switch = True
    """CRLF is LF."""
    unicode: Switch = True
    """Unicode normalisation form C."""
    nonces: Switch = True
    """Take header-like lines that change with every request out of the very head of system texts
    (`x-anthropic-billing-header` and what `prefix.nonce_lines` adds)."""
    clock: _Clock = Clock.OFF
    """Times and dates. `coarsen`: to `clock_unit`; `move`: to the end of the last system text. What the model is told
    changes: it no longer knows the time, or reads it elsewhere."""
    clock_unit: Unit = Unit.DAY
    """What `coarsen` leaves of a time."""
    ids: _Ids = Ids.OFF
    """UUIDs, ids of requests, sessions and traces, epoch seconds, hex digests. `move`: to the end of the last system
    text; `drop`: the model no longer knows them."""
    tool_noise: Switch = False
    """Take comments out of the schemas of tools, and times and ids out of their descriptions."""
    patterns: tuple[PatternSettings, ...] = ()
    """Expressions of your own, applied in order, in code blocks and quotations too."""


class PrefixRowSettings(Model):
    tools: Switch | None = None
    """As `prefix.rules.tools`, for these requests."""
    newlines: Switch | None = None
    """As `prefix.rules.newlines`, for these requests."""
    unicode: Switch | None = None
    """As `prefix.rules.unicode`, for these requests."""
    nonces: Switch | None = None
    """As `prefix.rules.nonces`, for these requests."""
    clock: _Clock | None = None
    """As `prefix.rules.clock`, for these requests."""
    clock_unit: Unit | None = None
    """As `prefix.rules.clock_unit`, for these requests."""
    ids: _Ids | None = None
    """As `prefix.rules.ids`, for these requests."""
    tool_noise: Switch | None = None
    """As `prefix.rules.tool_noise`, for these requests."""
    patterns: Switch | None = None
    """Whether `prefix.rules.patterns` hold for these requests."""


class HintSettings(Model):
    prompt_cache_key: Switch = False
    """Send OpenAI's `prompt_cache_key`, one for each family of prompts and scope, with chat completions that have
    none, so that they meet in one cache."""
    cache_salt: Switch = False
    """Send vLLM's and SGLang's `cache_salt`, one for each scope: nobody can tell by an answer's speed what others have
    asked. Callers then share no prefixes with other scopes."""
    cache_prompt: Switch = False
    """Send llama.cpp's `cache_prompt: true`, for servers where that is not the default."""


class PrefixSettings(Model):
    mode: Switch = True
    """Whether rules are applied at all. Off: forwarded bodies are the callers', byte for byte; what diverges is still
    learned."""
    rules: PrefixRulesSettings = PrefixRulesSettings()
    nonce_lines: Names = ()
    """More names of lines for the rule `nonces`; `*` for any letters."""
    hints: HintSettings = HintSettings()
    routing: Policy = Policy.AFFINITY
    """With several backends, which one takes a request. `affinity`: the one that knows its prefix."""
    load_bound: float = Field(default=1.25, ge=1, le=100)
    """How many times its share of the load a backend may carry before `affinity` passes it over; the one that holds a
    conversation's history may carry more, up to twice that."""
    load_interval: Duration = 2.0
    """How often the backends' `/metrics` are read to judge their load; 0 for never."""
