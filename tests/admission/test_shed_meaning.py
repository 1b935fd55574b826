"""Batch work that would be refused may have the answer to a question that is a little less like its own."""

import pytest

from tests.admission.test_gate import ask, gated, says  # noqa: F401
from tests.fakes.embedder import Chosen
from tests.rig import until

ASKED = "How do I get a new password for my account?"
LIKE = "How can I get a new password for my account?"
OTHER = "How do I not get a new password for my account?"


@pytest.fixture
def embedder() -> Chosen:
    made = Chosen()
    made.near(ASKED, 1.0)
    made.near(LIKE, 0.89)
    made.near(OTHER, 0.89)
    return made


async def full(gated, held, embedder, **values):  # noqa: F811
    """A proxy that knows one answer, and whose only slot is taken."""
    proxy, client = await gated(1, embedder=embedder, admission__p1__depth=0, admission__p2__depth=0, **values)
    first = ask(client, ASKED)
    await held.has(1)
    held.let()
    await first
    await until(lambda: len(proxy.house.meaning.index._index) == 1)
    busy = ask(client, "busy")
    await held.has(1)
    return client, busy


async def finish(held, busy) -> None:
    held.let_all()
    await busy


async def test_where_it_is_allowed_a_less_like_question_does(gated, held, embedder):  # noqa: F811
    client, busy = await full(gated, held, embedder, admission__shed_threshold=0.85)
    answer = await client.send(says(LIKE), X_Priority="P2")
    assert (answer.status, answer.cache, answer.get("x-cache-tier")) == (200, "HIT", "semantic")
    assert (answer.get("x-cache-similarity"), answer.get("x-cache-threshold")) == ("0.8900", "0.8500")
    await finish(held, busy)


@pytest.mark.parametrize(
    ("text", "priority", "headers"),
    [
        (LIKE, "P1", {}),  # only batch work
        (OTHER, "P2", {}),  # the guards stand
        (LIKE, "P2", {"X_Cache_Semantic": "0.9"}),  # a caller's own threshold stands
        (LIKE, "P2", {"X_Cache_Semantic": "off"}),
    ],
)
async def test_else_it_is_refused(gated, held, embedder, text, priority, headers):  # noqa: F811
    client, busy = await full(gated, held, embedder, admission__shed_threshold=0.85)
    assert (await client.send(says(text), X_Priority=priority, **headers)).status == 429
    await finish(held, busy)


async def test_by_default_it_is_refused(gated, held, embedder):  # noqa: F811
    client, busy = await full(gated, held, embedder)
    assert (await client.send(says(LIKE), X_Priority="P2")).status == 429
    await finish(held, busy)


async def test_a_rule_may_allow_it_for_some(gated, held, embedder):  # noqa: F811
    rules = [{"match": {"path": CHATS}, "set": {"shed_threshold": 0.85}}]
    client, busy = await full(gated, held, embedder, rules=rules)
    assert (await client.send(says(LIKE), X_Priority="P2")).cache == "HIT"
    await finish(held, busy)


CHATS = "/v1/chat/*"
