"""A real client asks a thousand times: no error, and the proxy does not grow."""

import psutil

WARM_UP = 200
CALLS = 1000
GROWTH = 8 * 2**20


async def test_a_thousand_hits_leave_the_memory_as_it_was(run, spawn, backend, tmp_path):
    process = await spawn("--data-dir", str(tmp_path / "data"))
    assert await run("openai_many.py", process.base, str(WARM_UP)) == {"MISS Hello.": 1, "HIT Hello.": WARM_UP - 1}
    proxy = psutil.Process(process.process.pid)
    before = proxy.memory_info().rss
    assert await run("openai_many.py", process.base, str(CALLS)) == {"HIT Hello.": CALLS}
    assert proxy.memory_info().rss - before < GROWTH
    assert backend.calls == 1
    assert "ERROR" not in process.output()
