"""What hits have spared the backend: tokens not computed, seconds not spent and, with a table of prices, money."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate

from cachetools import LRUCache

from cacheproxy.core import key
from cacheproxy.core.model import Entry
from cacheproxy.ports import Journal

REMEMBERED = 16_384
"""Entries whose own savings are known; those not used for longest are forgotten, their sums stay."""
SHOWN = 20
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost for the models that `model` (a shell pattern) matches."""

    model: str
    prompt: float
    completion: float


@dataclass(slots=True)
class _Account:
    model: str
    hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    money: float = 0.0

    def add(self, entry: Entry, money: float) -> None:
        prompt, completion = entry.answer.tokens
        self.hits += 1
        self.prompt_tokens += prompt
        self.completion_tokens += completion
        self.seconds += entry.took
        self.money += money

    def plain(self, *, priced: bool) -> dict[str, object]:
        facts: dict[str, object] = {
            "hits": self.hits,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "seconds": round(self.seconds, 6),
        }
        return {**facts, "money": round(self.money, 9)} if priced else facts


class Savings:
    """Adds up what was spared. The first price whose pattern matches a model is its price."""

    def __init__(self, journal: Journal, prices: Sequence[Price] = (), currency: str = "USD") -> None:
        self._journal = journal
        self._prices = [(re.compile(translate(price.model)), price) for price in prices]
        self._currency = currency
        self._sum = _Account("")
        self._accounts: LRUCache[bytes, _Account] = LRUCache(REMEMBERED)

    def note(self, entry: Entry) -> None:
        """`entry` was served in place of the backend."""
        prompt, completion = entry.answer.tokens
        money = self._price(entry.model, prompt, completion)
        account = self._accounts.get(entry.key)
        if account is None:
            account = self._accounts[entry.key] = _Account(entry.model)
        account.add(entry, money)
        self._sum.add(entry, money)
        self._journal.add("saved_tokens", prompt, "prompt")
        self._journal.add("saved_tokens", completion, "completion")
        self._journal.add("saved_seconds", entry.took)
        if self._prices:
            self._journal.add("saved_money", money)

    def _price(self, model: str, prompt: int, completion: int) -> float:
        for pattern, price in self._prices:
            if pattern.match(model):
                return (prompt * price.prompt + completion * price.completion) / _MILLION
        return 0.0

    def of(self, entry_key: bytes) -> dict[str, object] | None:
        """What the entry of `entry_key` has spared, if that is known."""
        account = self._accounts.get(entry_key)
        return account.plain(priced=bool(self._prices)) if account is not None else None

    def summary(self) -> dict[str, object]:
        """The sums, and the entries that spared most backend time."""
        priced = bool(self._prices)
        best = sorted(self._accounts.items(), key=lambda pair: pair[1].seconds, reverse=True)[:SHOWN]
        facts = self._sum.plain(priced=priced)
        if priced:
            facts["currency"] = self._currency
        facts["entries"] = [
            {"entry_id": key.entry_id(name), "model": account.model, **account.plain(priced=priced)}
            for name, account in best
        ]
        return facts
