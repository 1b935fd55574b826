"""How much of its prompts the real engine had in its own prefix cache, by its own count. Never by time."""

from collections.abc import Iterator

import pytest

from tests import rig
from tests.engine_real import prompts
from tests.engine_real.prompts import Kind, Tally
from tests.parts import engine as part

RULES = 50
"""Of a system text: about 1,200 tokens."""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[part.Engine]:
    running = part.start(tmp_path_factory.mktemp("small") / "log", **prompts.ENGINE)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[part.Engine]]:
    """Two engines, each of which remembers several prompts."""
    running = [part.start(tmp_path_factory.mktemp("replica") / "log", **prompts.ENGINE, memory=256) for _ in range(2)]
    yield running
    for one in running:
        one.stop()


async def told(client: rig.Client, kind: Kind, name: str, count: int = 2) -> Tally:
    """What the engine says of `count` requests that follow a first one."""
    text = prompts.rules(name, RULES)
    tally = Tally()
    for number in range(count + 1):
        answer = await client.send(kind(text, number), key=None)
        assert answer.status == 200, answer.body
        if number:
            tally.add(answer)
    assert tally.prompt > count * 1000
    return tally


CASES = [
    # What comes, the rules in force, whether the engine finds it in its cache.
    ("same", prompts.same, {}, True),
    ("clock", prompts.clocked, {}, False),
    ("clock-move", prompts.clocked, {"clock": "move"}, True),
    ("clock-coarsen", prompts.clocked, {"clock": "coarsen"}, True),
    ("line-ends", prompts.mixed, {}, True),
    ("line-ends-as-they-come", prompts.mixed, {"newlines": False}, False),
    ("nonce", prompts.agent, {}, True),
    ("nonce-as-it-comes", prompts.agent, {"nonces": False}, False),
    ("tools", prompts.shuffled, {}, True),
    ("tools-as-they-come", prompts.shuffled, {"tools": False}, False),
]


@pytest.mark.parametrize(("name", "kind", "rules", "found"), CASES, ids=[case[0] for case in CASES])
async def test_the_engine_finds_what_the_rules_make_equal(start, session, small, name, kind, rules, found):
    """B07, B08, B09: with the rule at least 95 % of the prompt come from the engine's cache, without it at most 5 %."""
    proxy = await start(upstream=small.url, **{f"prefix__rules__{rule}": value for rule, value in rules.items()})
    tally = await told(rig.Client(proxy.base, session), kind, name)
    assert tally.share >= 0.95 if found else tally.share <= 0.05, tally


async def test_without_a_proxy_the_clock_costs_the_whole_prompt(session, small):
    """The measure itself: the engine alone, asked the same way."""
    direct = rig.Client(small.url, session)
    assert (await told(direct, prompts.same, "direct")).share >= 0.95
    assert (await told(direct, prompts.clocked, "direct-clock")).share <= 0.05


@pytest.mark.parametrize(("routing", "found"), [("affinity", True), ("round-robin", False)])
async def test_requests_with_one_prompt_meet_one_replica(start, session, replicas, routing, found):
    """Three prompts in turn, two replicas: sent to one after the other, the second question finds nothing."""
    proxy = await start(upstream=[one.url for one in replicas], prefix__routing=routing)
    client = rig.Client(proxy.base, session)
    tally = Tally()
    for number in range(3):
        for name in ("one", "two", "three"):
            answer = await client.send(prompts.same(prompts.rules(f"{routing}-{name}", 25), number), key=None)
            assert answer.status == 200, answer.body
            if number:
                tally.add(answer)
    assert tally.share >= 0.9 if found else tally.share <= 0.7, tally


@pytest.mark.parametrize("streamed", [False, True], ids=["json", "stream"])
async def test_the_proxy_counts_what_the_engine_says(start, session, small, streamed):
    """Its own counters are the engine's: of answers kept, passed by, and streamed without anyone asking for usage."""
    proxy = await start(upstream=small.url, prefix__rules__clock="coarsen")
    client = rig.Client(proxy.base, session)
    text = prompts.rules(f"counted-{streamed}", 12)
    tally = Tally()
    usage = {"stream": True, "stream_options": {"include_usage": True}} if streamed else {}
    for number, control in enumerate(({}, {"Cache_Control": "no-store"}, {})):
        tally.add(await client.send({**prompts.clocked(text, number), **usage}, key=None, **control))
    admin = rig.Client(proxy.admin, session)
    stats = (await admin.send(method="GET", path="/admin/stats", key=None)).json["prefix"]
    assert (stats["prompt_tokens"], stats["cached_tokens"]) == (tally.prompt, tally.cached)
    assert stats["hit_share"] == pytest.approx(tally.share)
    metrics = (await admin.send(method="GET", path="/metrics", key=None)).body.decode().splitlines()
    for name, value in (("prompt", tally.prompt), ("cached", tally.cached)):
        (line,) = [line for line in metrics if line.startswith(f"cacheproxy_upstream_{name}_tokens_total{{")]
        assert 'stabilised="yes"' in line
        assert float(line.rpartition(" ")[2]) == value
    if streamed:
        # The usage that nobody asked for is asked for by the proxy, counted, and taken out again.
        answer = await client.send({**prompts.clocked(text, 9), "stream": True}, key=None)
        assert all(document.get("usage") is None for document in answer.documents)
        again = (await admin.send(method="GET", path="/admin/stats", key=None)).json["prefix"]
        assert again["prompt_tokens"] > tally.prompt
        assert again["cached_tokens"] - tally.cached >= 0.9 * (again["prompt_tokens"] - tally.prompt)
