"""System prompts as applications send them, and how much of them a real engine had in its prefix cache."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests import rig
from tests.parts.engine import MODEL

# Tools first, as many models' own templates write them; the small model's own leaves tools out.
TEMPLATE = """{%- if tools %}<|im_start|>system
# Tools
<tools>{% for tool in tools %}
{{ tool | tojson }}{% endfor %}
</tools>
Give each call as a JSON object within <tool_call></tool_call> tags.<|im_end|>
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
ENGINE = {"context": 4096, "layers": 4, "template": TEMPLATE}
"""How the engine is started that is asked for its counts only: a tenth of the work, and no sense in what it says."""
QUESTIONS = (
    "What is rule one?",
    "Name a topic.",
    "Say hello.",
    "List two items.",
    "Who are you?",
    "What is item nine?",
)


def rules(name: str, count: int) -> str:
    """A system text of about 24 tokens a rule, no two of them alike from their first words on."""
    lines = [
        f"Rule {i} of {name}: when the customer mentions topic {i * 7 % 101}, be polite and cite item {i * 13 % 97}."
        for i in range(count)
    ]
    return f"You work for {name}.\n" + "\n".join(lines)


def stamp(number: int) -> str:
    """A moment of a day, another one for each number."""
    return f"Current time: 2026-11-30T22:{number // 60 % 60:02d}:{number % 60:02d}.{number * 7919 % 1000:03d}Z"


def tools(number: int) -> list[dict[str, Any]]:
    """The same tools, in another order for each number, and so are the names in their schemas."""
    dice = random.Random(number)
    listed = []
    for name in ("search_orders", "cancel_order", "refund", "open_ticket", "find_customer", "send_mail"):
        fields = {f"{name}_{part}": {"type": "string", "description": f"the {part}"} for part in ("id", "from", "note")}
        names = dice.sample(list(fields), len(fields))
        schema = {"type": "object", "properties": {n: fields[n] for n in names}, "required": sorted(fields)}
        about = f"{name} on behalf of a customer who has asked for it, and tell what came of it."
        listed.append({"type": "function", "function": {"name": name, "description": about, "parameters": schema}})
    return dice.sample(listed, len(listed))


Kind = Callable[[str, int], dict[str, Any]]
"""Gives the fields of the request of this number, with this system text."""


def same(text: str, number: int) -> dict[str, Any]:
    return _asked(text, number)


def clocked(text: str, number: int) -> dict[str, Any]:
    """A clock in front."""
    return _asked(f"{stamp(number)}\n{text}", number)


def agent(text: str, number: int) -> dict[str, Any]:
    """A coding agent's line of one request only."""
    nonce = random.Random(number).randbytes(3).hex()[:5]
    return _asked(f"x-anthropic-billing-header: cc_version=1.0; cch={nonce};\n{text}", number)


def mixed(text: str, number: int) -> dict[str, Any]:
    """Now LF, now CRLF."""
    return _asked(text.replace("\n", "\r\n") if number % 2 else text, number)


def shuffled(text: str, number: int) -> dict[str, Any]:
    """With tools in any order."""
    return {**_asked(text, number), "tools": tools(number)}


def _asked(text: str, number: int) -> dict[str, Any]:
    question = f"{QUESTIONS[number % len(QUESTIONS)]} ({number})"
    messages = [{"role": "system", "content": text}, {"role": "user", "content": question}]
    return {"model": MODEL, "messages": messages, "max_tokens": 1, "temperature": 0}


@dataclass
class Tally:
    """What the engine said of its prompts, in all."""

    prompt: int = 0
    cached: int = 0

    def add(self, answer: rig.Answer) -> None:
        documents = answer.documents if (answer.get("content-type") or "").startswith("text/event") else [answer.json]
        usage = next(d["usage"] for d in reversed(documents) if d.get("usage"))
        self.prompt += usage["prompt_tokens"]
        self.cached += usage["prompt_tokens_details"]["cached_tokens"]

    @property
    def share(self) -> float:
        return self.cached / self.prompt
