"""Questions that look the same to an embedder and are not: what came before differs, or what is beyond its window.

Each goes the way of a request: binder, question, partition, embedder, index. Guards and threshold are left out, so that
it is these alone that keep the two apart.
"""

import json
from itertools import pairwise

from cacheproxy.core.model import Endpoint, Row, Unfit
from cacheproxy.core.outcome import Reason
from cacheproxy.engine.binder import Binder
from cacheproxy.engine.bound import Bound, Head
from cacheproxy.meaning.embedder import LocalEmbedder
from cacheproxy.meaning.local import Local
from cacheproxy.settings import resolve
from cacheproxy.wiring import terms
from cacheproxy.wiring.house import realm
from tests.quality import serving

COUNT = 100
_LINES = (b"Content-Type", b"application/json"), (b"Authorization", b"Bearer a")


def binder() -> Binder:
    told = resolve({"upstreams": ["http://127.0.0.1:1"], "store.data_dir": "none"}, None, {}).settings
    return Binder(bytes(32), terms.terms(told, realm(told, [])))


async def served(model: LocalEmbedder, requests: list[tuple[list[dict], list[dict]]]) -> int:
    """Of how many pairs of conversations the second would be served what the first was answered."""
    binds, count = binder(), 0
    for number, (first, second) in enumerate(requests):
        index = Local(model.identity.dim, 10)
        for is_stored, messages in ((True, first), (False, second)):
            bound = _bound(binds, messages)
            question = binds.question(bound)
            assert not isinstance(question, Reason), question
            vector = await model.embed(question.text, b"")
            if isinstance(vector, Unfit):
                continue
            partition = binds.partition(bound, question)
            if is_stored:
                await index.add(Row(number.to_bytes(32, "big"), partition, vector, question.text, 1.0))
            else:
                found = await index.search(partition, vector, question.text, serving.DEFAULTS.candidates, 0.0)
                count += any((near.similarity or 0) >= serving.DEFAULTS.threshold for near in found)
    return count


def _bound(binds: Binder, messages: list[dict]) -> Bound:
    head = Head("POST", b"/v1/chat/completions", _LINES, binds.credential(_LINES))
    bound = binds.bind(head, Endpoint.CHAT, json.dumps({"model": "m", "messages": messages}).encode())
    assert isinstance(bound, Bound)
    return bound


def earlier_turns(texts: list[str]) -> list[tuple[list[dict], list[dict]]]:
    """Conversations that differ only in one word of an earlier turn."""

    def talk(card: str, text: str) -> list[dict]:
        return [
            {"role": "user", "content": f"I have a question about my {card} card."},
            {"role": "assistant", "content": "Of course, what would you like to know?"},
            {"role": "user", "content": text},
        ]

    return [(talk("credit", text), talk("debit", text)) for text in texts[:COUNT]]


def same_turns(texts: list[str]) -> list[tuple[list[dict], list[dict]]]:
    """The same conversation twice: what has to be found, lest nothing be served because nothing ever is."""
    return [(first, first) for first, _ in earlier_turns(texts)]


def beyond_the_window(texts: list[str]) -> list[tuple[list[dict], list[dict]]]:
    """The same long context, then another question."""
    context = " ".join(texts[:60])
    ends = pairwise(texts[: COUNT + 1])
    return [tuple([{"role": "user", "content": f"{context}\n\n{end}"}] for end in both) for both in ends]
