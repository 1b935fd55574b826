"""What a backend is told beside the caller's own words so that its prefix cache serves better or leaks less.

Fields that change nothing of the answer. Each is switched on by the operator; none replaces what the caller said.
"""

from dataclasses import dataclass
from enum import StrEnum

import orjson

from cacheproxy.core import key, splice
from cacheproxy.core.model import Endpoint, Fields
from cacheproxy.engine.prefixed import Prefix

_LOWER_FIRST, _HIGHER_FIRST = (0, 1, 2), (2, 1, 0)


class Scheduler(StrEnum):
    """Whose scheduler is told of priorities."""

    OFF = "off"
    VLLM = "vllm"  # `--scheduling-policy priority`: lower numbers first
    SGLANG = "sglang"  # `--enable-priority-scheduling`: higher numbers first
    DYNAMO = "dynamo"  # its router and engines: higher numbers first


_NUMBERS = {Scheduler.VLLM: _LOWER_FIRST, Scheduler.SGLANG: _HIGHER_FIRST}


@dataclass(slots=True)
class Hints:
    """Which hints are given. `secret` keys the values, so that they tell nothing of scopes and prompts."""

    secret: bytes = b""
    prompt_cache_key: bool = False
    cache_salt: bool = False
    cache_prompt: bool = False
    priority: Scheduler = Scheduler.OFF

    def rekey(self, secret: bytes) -> None:
        """From now on values are made with `secret`."""
        self.secret = secret

    def values(self, prefix: Prefix | None) -> dict[str, str | bool]:
        """The fields to add for a request with this prefix.

        `prompt_cache_key` (OpenAI) only to chat completions: an answer of the Responses API repeats it, and the caller
        would be told what it never said. `cache_salt` (vLLM, SGLang) wherever something is generated. `cache_prompt`
        (llama.cpp) to chat completions.
        """
        if prefix is None:
            return {}
        found: dict[str, str | bool] = {}
        chat = prefix.endpoint is Endpoint.CHAT
        if self.prompt_cache_key and chat and (route := prefix.route) is not None:
            found["prompt_cache_key"] = key.hint(self.secret, "prompt_cache_key", prefix.owner, route.home)
        if self.cache_salt:
            found["cache_salt"] = key.hint(self.secret, "cache_salt", prefix.owner)
        if self.cache_prompt and chat:
            found["cache_prompt"] = True
        return {name: value for name, value in found.items() if prefix.fields.get(name) is None}

    def urgency(self, prefix: Prefix | None, priority: int) -> dict[str, int]:
        """The field that tells a backend's own scheduler of this priority, in place of what the caller may say."""
        numbers = _NUMBERS.get(self.priority)
        return {} if prefix is None or numbers is None else {"priority": numbers[priority]}

    def lines(self, priority: int) -> Fields:
        """The header lines that do."""
        if self.priority is not Scheduler.DYNAMO:
            return ()
        return ((b"x-dynamo-request-priority", b"%d" % _HIGHER_FIRST[priority]),)


def with_hint(plain: bytes, name: str, value: str | bool | int) -> bytes:
    """The request body `plain` with a hint; no other byte differs."""
    return splice.replace(plain, name.encode(), orjson.dumps(value))
