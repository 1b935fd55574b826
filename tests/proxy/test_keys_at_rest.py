"""Keys on the disk and in the open: the same in every process, of one size, and nothing can be read out of them."""

import json
import sqlite3

from tests import rig
from tests.fakes.backend import Numbered
from tests.proxy import wire
from tests.rig import BODY

NESTED = json.dumps(
    {
        "model": "m",
        "messages": [{"role": "system", "content": "Réponds en 日本語 🔑"}, {"role": "user", "content": "x"}],
        "temperature": 0.1, "top_p": 1e-7, "logit_bias": {"50256": -100, "1": 0.30000000000000004},
        "tools": [
            {"type": "function", "function": {"name": f"f{i}", "parameters": {
                "type": "object", "properties": {name: {"type": "string", "enum": ["ä", "b"]} for name in "zyxwvu"},
                "required": ["z", "y"], "additionalProperties": False,
            }}}
            for i in range(3)
        ],
    },
    ensure_ascii=False,
).encode()  # fmt: skip

SECRET = "SECRET-77"
TOKEN = "sk-SECRET-88"


async def test_key_is_the_same_in_every_process(spawn, session, backend, tmp_path):
    """B04: byte-identical requests to processes with different hash seeds, one after the other: one key."""
    backend.script = Numbered()
    data = str(tmp_path / "data")
    found = []
    for seed in ("1", "2", "3"):
        process = await spawn("--data-dir", data, PYTHONHASHSEED=seed, CACHEPROXY_DRAIN__GRACE="0")
        found.append(await rig.Client(process.base, session).send(NESTED))
        process.terminate()
        assert await process.exit() == 0
    assert [(a.cache, a.text) for a in found] == [("MISS", "answer 1"), ("HIT", "answer 1"), ("HIT", "answer 1")]
    with sqlite3.connect(tmp_path / "data" / "cache.sqlite3") as file:
        keys = [row[0] for row in file.execute("SELECT key FROM entry")]
    file.close()
    assert [len(key) for key in keys] == [32]


async def everything(client: rig.Client) -> list[rig.Answer]:
    """Requests of every outcome, all with the secret in their prompt, their credential, or where they fail."""
    short = {"messages": [{"role": "user", "content": SECRET}], "user": SECRET, "metadata": {"a": SECRET}}
    broken = b'{"model":"m","messages":[{"role":"user","content":"SECRET-77"}'
    return [
        await client.chat(**short, key=TOKEN, stream=True),
        await client.chat(**short, key=TOKEN, Cache_Control="no-store"),
        await client.chat(**short, key=TOKEN, Cache_Control="only-if-cached", X_Cache_Namespace=SECRET),
        await client.chat(**short, key=TOKEN, X_Cache_TTL=SECRET),
        await client.chat(**short, key=TOKEN, cache={"ttl": SECRET}),
        await client.send(broken, key=TOKEN),
        await client.send({**BODY, **short}, key=TOKEN, path=f"/v1/other?q={SECRET}"),
        await client.send(None, key=TOKEN, method="GET", path=f"/v1/files/{SECRET}"),
    ]


async def read(session, url: str) -> str:
    async with session.get(url) as answer:
        return await answer.text()


async def test_no_prompt_in_keys_logs_headers_or_metrics(spawn, session, backend, tmp_path):
    """B14: with a prompt of 2 MiB and debug logs, no part of it, nor of the credential, is anywhere but on its way."""
    backend.script = Numbered()
    process = await spawn("--data-dir", str(tmp_path / "data"), "--log-level", "debug", CACHEPROXY_DRAIN__GRACE="0")
    large = {"messages": [{"role": "user", "content": SECRET + " " + "a" * 2 * 2**20}]}
    long = [await wire.ask(process.port, wire.request({**large, "stream": s}, key=TOKEN)) for s in (False, True, False)]
    assert [a.get(b"x-cache") for a in long] == [b"MISS", b"HIT", b"HIT"]
    client = rig.Client(process.base, session)
    answers = await everything(client)
    assert [a.status for a in answers] == [200, 200, 504, 400, 400, 400, 200, 200]
    assert sum(SECRET.encode() in s.raw for s in backend.seen) == len(backend.seen)

    async def break_off(exchange) -> None:
        await exchange.events(done=False)

    backend.script = break_off
    answers.append(await client.chat(messages=[{"role": "user", "content": SECRET}], seed=1, stream=True))
    await backend.stop()
    gone = await client.chat(messages=[{"role": "user", "content": SECRET}], seed=2, key=TOKEN)
    assert gone.status == 502
    open_text = [str(a.headers) for a in [*answers, *long]] + [str(gone.headers), gone.body.decode()]
    open_text += [a.body.decode() for a in answers if a.status >= 400]
    open_text += [await read(session, process.admin + path) for path in ("/metrics", "/admin/stats", "/admin/config")]
    process.terminate()
    assert await process.exit() == 0
    open_text.append(process.output())
    assert "cannot be reached" in open_text[-1]
    on_disk = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir())
    assert b"answer 1" in on_disk
    for word in (SECRET, "SECRET-88", "aaaaaaaa"):
        assert not any(word in text for text in open_text), word
        assert word.encode() not in on_disk, word
