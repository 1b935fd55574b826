"""The counters are what callers saw: after any run of hits, misses, bypasses, errors, cut streams, callers that leave
and a clock that moves, by source, reason, operation and token. `CACHEPROXY_OPERATIONS` makes the runs longer."""

from collections import Counter
from typing import Any

import pytest

from cacheproxy.core.model import Census
from tests import rig
from tests.examples import OPERATIONS, SEED
from tests.fakes.backend import Exchange, gives, plain
from tests.proxy.dice import Traffic

pytestmark = pytest.mark.timeout(120 + OPERATIONS // 20)

HOUSES: dict[str, dict[str, Any]] = {
    "usual": {"exact__ttl": 60},
    "lasting": {"exact__stale_while_revalidate": 30, "exact__negative_ttl": 5, "exact__refresh": 0.5, "exact__ttl": 20},
    "stale if error": {"exact__stale_if_error": 300, "exact__ttl": 10, "access__grant_ttl": 5},
    "variants": {"exact__variants": 3, "exact__ttl": 60},
    "shadow": {"exact__mode": "shadow"},
    "shared": {"access__scope": "shared"},
}


def counted(proxy: rig.InProcess, name: str) -> dict[tuple[str, ...], float]:
    """A counter's values that are not 0, by their labels."""
    [metric] = [m for m in proxy.house.telemetry.registry.collect() if m.name == f"cacheproxy_{name}"]
    return {
        tuple(sample.labels.values()): sample.value for sample in metric.samples
        if sample.name.endswith("_total") and sample.value
    }  # fmt: skip


async def is_quiet(proxy: rig.InProcess) -> None:
    """Wait until nothing runs and nothing is held."""
    inside = proxy.house.engine

    def met() -> bool:
        held = (proxy.house.proxy.running, inside.refresher.running, len(inside.fill._tasks), inside.budget.held)
        return held == (0, 0, 0, 0)

    await rig.until(met, what=f"quiet: {proxy.house.proxy.running} {inside!r}")


@pytest.mark.parametrize("name", HOUSES)
async def test_the_counters_are_what_callers_saw(clock, start, backend, tmp_path, name):
    """B78: nothing is counted twice, and nothing is forgotten."""
    disk = {"store__data_dir": str(tmp_path)} if name in ("usual", "lasting") else {}
    proxy = await start(**HOUSES[name], **disk)
    traffic = Traffic(proxy, backend, clock, f"{SEED} {name}")
    for _ in range(OPERATIONS // len(HOUSES)):
        await traffic.step()
    await is_quiet(proxy)
    assert counted(proxy, "requests") == traffic.seen
    assert counted(proxy, "errors") == {(code,): number for code, number in traffic.errors.items()}
    summary = proxy.house.telemetry.summary()
    by_source: Counter[str] = Counter()
    by_reason: Counter[str] = Counter()
    for (source, reason, _), number in traffic.seen.items():
        by_source[source] += number
        by_reason[reason] += number
    assert {s: n for s, n in summary["requests"].items() if n} == by_source
    assert summary["reasons"] == {r: n for r, n in by_reason.items() if r}
    served = by_source["HIT"] + by_source["STALE"]
    assert summary["hit_rate"] == served / (served + by_source["MISS"] or 1)
    assert list(summary["savings"].values())[1:3] == traffic.spared
    assert [counted(proxy, "saved_tokens").get((kind,), 0) for kind in ("prompt", "completion")] == traffic.spared
    if name != "shadow":
        assert min(served, traffic.spared[0], by_source["MISS"], by_source["BYPASS"], sum(traffic.errors.values())) > 9
    await counts_its_entries(proxy)


async def counts_its_entries(proxy: rig.InProcess) -> None:
    """The gauges are the store's census, and that is what lies there."""
    store = proxy.house.store
    front = getattr(store, "_front", store)
    held = list(front._entries.values())
    assert front.census() == Census(len(held), sum(e.size for e in held))
    gauges = proxy.house.telemetry.summary()
    assert (gauges["store_entries"], gauges["store_bytes"]) == (store.census().entries, store.census().bytes)
    assert gauges["recording_bytes"] == gauges["requests_running"] == 0


async def test_a_stored_answer_in_place_of_a_failure_is_one_request(clock, start, session, backend):
    """The backend's failure, which nobody saw, is not counted as a miss beside it."""
    proxy = await start(exact__stale_if_error=300)
    client = rig.Client(proxy.base, session)
    await client.chat(X_Cache_TTL="10")
    clock.time += 20
    backend.script = gives({"error": {"message": "no"}}, "503 No")
    assert (await client.chat()).get("x-cache-reason") == "backend_failed"
    endpoint = "chat.completions"
    assert counted(proxy, "requests") == {("MISS", "absent", endpoint): 1, ("STALE", "backend_failed", endpoint): 1}


async def test_what_is_known_of_a_batch_is_spared_as_often_as_it_is_given(client, proxy, backend):
    """An input that stands twice in a batch would have been counted twice by the backend."""

    async def embed(exchange: Exchange) -> None:
        if exchange.seen.target != b"/v1/embeddings":
            await plain(exchange)
            return
        asked = exchange.seen.json["input"]
        texts = asked if isinstance(asked, list) else [asked]
        data = [{"index": i, "embedding": [1.0]} for i, _ in enumerate(texts)]
        await exchange.json({"data": data, "model": "m", "usage": {"prompt_tokens": sum(map(len, texts))}})

    backend.script = embed
    for given, spared in (("aa", 0), (["aa", "aa"], 4), (["aa", "b", "aa"], 8)):
        await client.send({"model": "m", "input": given}, path="/v1/embeddings")
        assert counted(proxy, "saved_tokens").get(("prompt",), 0) == spared
