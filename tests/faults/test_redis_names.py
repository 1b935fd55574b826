"""What callers call things never leads to another's answers, and is nowhere to be read but in the values themselves."""

import itertools
import re

import pytest

from tests.faults.load import ask, purge
from tests.rig import Client

pytestmark = pytest.mark.redis

LONGEST_KEY = 200
MARKER = "SECRET-77"
MODELS = ["org/gemma:latest", "org", "gemma:latest", "org/gemma"]
LABELS = ["", "v1.2%20%7Bx%7D", "v1.2", "%7Bx%7D", "v1.2%20{x}%3A*"]
"""Percent-encoded, as headers carry them."""
GROUPS = {"a|b": "key-1", "a": "key-2", "b": "key-3", "a|b{0}": "key-4"}


async def test_every_scope_is_hit_and_no_other(sharing, redis, telling):
    """Model, key group, namespace and knowledge base with all that has a meaning in keys, patterns and hash tags."""
    groups = [{"name": name, "keys": [key]} for name, key in GROUPS.items()]
    _, clients = await sharing(redis.url, access__scope="tenant", access__key_groups=groups)
    cases = [
        *itertools.product(MODELS, ["key-1"], LABELS[:2], LABELS[:2]),
        *itertools.product(MODELS[:1], GROUPS.values(), LABELS, LABELS[:2]),
        *itertools.product(MODELS[:1], ["key-1"], LABELS[:2], LABELS),
    ]
    cases = list(dict.fromkeys(cases))

    async def asked(client: Client, case) -> str:
        model, key, namespace, base = case
        named = {"X_Cache_Namespace": namespace, "X_Cache_KB": base}
        answer = await ask(client, "x", model=model, key=key, **{name: said for name, said in named.items() if said})
        return answer.cache

    assert {await asked(clients[0], case) for case in cases} == {"MISS"}
    assert {await asked(clients[1], case) for case in cases} == {"HIT"}
    assert telling.calls == len(cases)
    keys = redis.cli("KEYS", "*")
    assert len([key for key in keys if b":e:" in key]) == len(cases)
    assert {
        bool(
            re.fullmatch(
                rb"cacheproxy:\{0\}:(e:[0-9a-f]{32}|f:[0-9a-f]{32}(:[0-9a-f:a-z]+)?|head|log|open|secret)", key
            )
        )
        for key in keys
    } == {True}


async def test_a_purge_by_such_a_name_means_that_name(sharing, redis, session):
    proxies, clients = await sharing(redis.url)
    names = {"X_Cache_Namespace": "v1.2%20%7Bx%7D"}, {"X_Cache_Namespace": "v1.2"}, {"X_Cache_KB": "v1.2%20%7Bx%7D"}
    for name in names:
        await ask(clients[0], "x", **name)
    assert (await purge(session, proxies[0], namespace="v1.2 {x}"))[1]["purged"] == 1
    assert [(await ask(clients[1], "x", **name)).cache for name in names] == ["MISS", "HIT", "HIT"]
    assert (await purge(session, proxies[1], kb="v1.2 {x}"))[1]["purged"] == 1
    assert [(await ask(clients[0], "x", **name)).cache for name in names] == ["HIT", "HIT", "MISS"]


AUDIT = "cacheproxy.audit: "
"""What an operator ordered to be purged is said there: the label in that order, and no word of a request."""


@pytest.mark.filterwarnings("ignore:Sending a large body")  # the test's own client
async def test_no_key_metric_header_or_log_line_has_a_word_of_a_request(spawn, redis, session, telling):
    """B14: a prompt of 2 MiB, with everything that is logged, and Redis in trouble too."""
    processes = [await spawn("--redis-url", redis.url, "--log-level", "debug", "--data-dir", "none") for _ in range(2)]
    clients = [Client(process.base, session) for process in processes]
    named = {
        "X_Cache_Namespace": f"{MARKER}-n", "X_Cache_Tags": f"{MARKER}-t", "X_Cache_KB": f"{MARKER}-k@1",
        "key": f"{MARKER}-key", "model": f"{MARKER}-m",
    }  # fmt: skip
    prompt = f"{MARKER} " + "word " * (2 * 2**20 // 5)
    answers = [await ask(client, prompt, **named) for client in (*clients, *clients)]
    assert [answer.cache for answer in answers] == ["MISS", "HIT", "HIT", "HIT"]
    await purge(session, processes[0], tags=f"{MARKER}-t")
    answers.append(await ask(clients[1], prompt, **named))
    assert answers[-1].cache == "MISS"
    for client in clients:
        await ask(client, prompt, Cache_Control="no-cache", **named)
    keys = redis.cli("KEYS", "*")
    assert len(keys) >= 4
    assert max(map(len, keys)) < LONGEST_KEY
    for process in processes:
        async with session.get(process.admin + "/metrics") as metrics:
            assert MARKER not in await metrics.text()
        assert len(process.output()) > 100
        assert MARKER not in "\n".join(line for line in process.output().splitlines() if AUDIT not in line)
        for word in (prompt[:20], f"{MARKER}-key", f"{MARKER}-n", f"{MARKER}-k", f"{MARKER}-m"):
            assert word not in process.output()
    assert not any(MARKER in value for answer in answers for _, value in answer.headers)
    assert MARKER.encode() not in b"\n".join(keys)
