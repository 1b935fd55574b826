"""Mutated requests, seeded: whatever comes, the proxy answers in HTTP, blames whom it should, and stays well.

`CACHEPROXY_MUTATIONS` says how many, `CACHEPROXY_SEED` which. A failure names the seed, the number and the bytes:
`mutant(load(), seed, number)` makes them again.
"""

import json
import os

import psutil
import pytest

from tests import rig
from tests.hostile import strict
from tests.hostile.caller import converse
from tests.hostile.mutants import load, mutant
from tests.hostile.tap import tapping

COUNT = int(os.environ.get("CACHEPROXY_MUTATIONS", "400"))
SEED = os.environ.get("CACHEPROXY_SEED", "1")
STEADY = 2_000
"""Mutants after which memory is held to what it was: before, buffers and caches still fill."""
MAY_GROW = 24 * 2**20
REFUSALS = {
    ("invalid_json", 400), ("invalid_header", 400), ("request_too_large", 413), ("unsupported_encoding", 415), ("cache_miss", 504),
}  # fmt: skip
"""Every error of ours that a request alone can bring about."""


def judge(heard: bytes, asked: list[bytes]) -> list[int]:
    """Every answer is well framed, and where it is ours in the documented form. The statuses."""
    statuses = []
    for answer in strict.answers(heard, asked):
        status = int(answer.first[0])
        statuses.append(status)
        if status != 200:
            error = json.loads(answer.body)["error"]
            assert error.keys() == {"message", "type", "param", "code"}
            assert (error["code"], status) in REFUSALS
    return statuses


@pytest.mark.timeout(60 + COUNT)
async def test_mutations(tmp_path, monkeypatch):
    """No error of ours but those that blame the request, nothing for the backend that is not well framed, no traceback,
    no growth; at the end an honest request is answered."""
    for name in ("CACHEPROXY_MUTATIONS", "CACHEPROXY_SEED"):
        monkeypatch.delenv(name, raising=False)
    requests = load()
    seen: dict[int, int] = {}
    async with tapping() as tap:
        process = await rig.spawn(
            tap.url, tmp_path / "log", "--data-dir", "none", CACHEPROXY_STORE__MEMORY_BYTES="1MiB"
        )
        resident = psutil.Process(process.process.pid).memory_info
        early = 0
        try:
            for number in range(COUNT):
                data = mutant(requests, SEED, number)
                tap.forget()
                try:
                    heard = await converse(process.port, data, leave=True)
                    for status in judge(heard, [r.first[0] for r in tap.requests]):
                        seen[status] = seen.get(status, 0) + 1
                    assert tap.faults == []
                    assert process.process.poll() is None
                except Exception as error:
                    raise AssertionError(f"seed {SEED!r}, mutant {number}: {error!r} by {data!r}") from error
                if number == STEADY:
                    early = resident().rss
            grown = resident().rss - early if early else 0
            await rig.until(lambda: not any(tap.waiting), what="the end of every unfinished request at the backend")
            honest = await converse(process.port, next(r for r in requests if r.target == rig.CHAT).wire())
            assert judge(honest, [b"POST"]) == [200]
        finally:
            process.kill()
    assert "Traceback" not in process.output() and " ERROR " not in process.output()
    assert grown < MAY_GROW
    assert {200, 400} <= seen.keys(), "the mutants test nothing"
    print(f"{COUNT} mutants of seed {SEED}: {dict(sorted(seen.items()))}, grown by {grown} bytes since the {STEADY}th")
