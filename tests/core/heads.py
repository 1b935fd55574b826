"""Heads of requests as the suites of the prefix layer need them."""

import random

import orjson

from cacheproxy.core.blocks import Block

UUIDS = "0f3c9a1e-77aa-4c0d-9b5e-2f6f1a2b3c4d", "5b1d2c3a-18f0-4e9a-8c77-90ab12cd34ef"
ODD = [
    "", "\ud800", "\r", "\r\n", "\0" * 50, "e" + "\u0301" * 5000, "1" * 100_000, "漢" * 10_000, " " * 100_000,
    "10:00:01 " * 3000, f"{UUIDS[0]} " * 2000, '"' * 5000, "\\" * 5001, "`" * 5000, "<log>" * 2000,
    '[{"description":"' + "\\" * 999, '{"description":"\ud800 10:00:01', "x" * 2**20,
]  # fmt: skip
"""Texts that nobody means, and that must break nothing."""


def head(*texts, tools=None):
    blocks = [Block(("messages", number, "content"), text) for number, text in enumerate(texts)]
    return blocks if tools is None else [Block(("tools",), orjson.dumps(tools).decode()), *blocks]


def prose(seed, sentences=40):
    """Text without times and ids, the same for the same seed."""
    dice = random.Random(seed)
    words = ["".join(dice.choices("ghijklmnopqrstuvwxyz", k=dice.randint(3, 9))) for _ in range(400)]
    lines = [" ".join(dice.choices(words, k=dice.randint(5, 15))).capitalize() + "." for _ in range(sentences)]
    return "\n".join(lines)


def octets(text):
    return len(text.encode("utf-8", "surrogatepass"))


def tool(name, description="Does it.", **properties):
    parameters = {"type": "object", "properties": {n: {"type": t} for n, t in properties.items()}}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}
