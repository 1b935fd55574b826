"""The admin listener: open probes, everything else behind the token, and nothing for foreign web pages."""

import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests import rig

TOKEN = "a-long-admin-token"
GUARDED = ["/", "/page.js", "/page.css", "/admin/stats", "/admin/config"]
OPEN = ["/livez", "/readyz", "/metrics"]


async def get(session, url: str, **headers: str) -> tuple[int, bytes]:
    async with session.get(url, headers={n.replace("_", "-"): v for n, v in headers.items()}) as answer:
        return answer.status, await answer.read()


async def test_without_a_token_everything_answers_on_loopback(proxy, session):
    for path in OPEN + GUARDED:
        assert (await get(session, proxy.admin + path))[0] == 200


@pytest.mark.parametrize("path", GUARDED)
async def test_token_is_needed_once_it_is_set(start, session, path):
    """B85: no token, a wrong one, a caller's key, a token in the query: 401; nothing of the answer leaks."""
    proxy = await start(admin__token=TOKEN)
    url = proxy.admin + path
    refused = [
        await get(session, url),
        await get(session, url, Authorization="Bearer wrong"),
        await get(session, url, Authorization=f"Basic {TOKEN}"),
        await get(session, url, Authorization="Bearer A"),
        await get(session, f"{url}?token={TOKEN}"),
        await get(session, url, X_Forwarded_For="127.0.0.1"),
    ]
    assert [status for status, _ in refused] == [401] * 6
    assert all(json.loads(body)["error"]["code"] == "unauthorized" for _, body in refused)
    assert (await get(session, url, Authorization=f"Bearer {TOKEN}"))[0] == 200


async def test_probes_and_metrics_stay_open_with_a_token(start, session):
    proxy = await start(admin__token=TOKEN)
    for path in OPEN:
        assert (await get(session, proxy.admin + path))[0] == 200


@pytest.mark.parametrize("path", ["//admin/stats", "/admin/../admin/stats", "/%61dmin/stats", "/admin/stats/"])
async def test_path_tricks_need_the_token_too(start, proxy, session, path):
    guarded = await start(admin__token=TOKEN)
    reply = await rig.raw(
        int(guarded.admin.rsplit(":", 1)[1]),
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode(),
    )
    assert reply.split(b" ")[1] == b"401"


async def test_foreign_pages_are_refused(proxy, session):
    """A page of another site in the operator's browser reaches nothing: by origin, or by a rebound name."""
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        status, body = await get(session, proxy.admin + "/admin/stats", **headers)
        assert (status, json.loads(body)["error"]["code"]) == (403, "forbidden")
    async with session.post(proxy.admin + "/admin/drain", headers={"Origin": "https://evil.example"}) as answer:
        assert answer.status == 403
    assert not proxy.house.proxy.draining
    assert (await get(session, proxy.admin + "/admin/stats", Origin=proxy.admin))[0] == 200


async def test_the_proxy_listener_has_no_admin_paths(client, backend, proxy):
    """Its whole path space belongs to the backend."""

    async def echo(exchange) -> None:
        await exchange.json({"target": exchange.seen.target.decode()})

    backend.script = echo
    for path in (*OPEN, *GUARDED):
        answer = await client.send(method="GET", path=path)
        assert answer.json == {"target": path}


async def test_stats_tell_what_happened(client, proxy, session):
    for _ in range(3):
        await client.chat()
    await client.chat(Cache_Control="no-store")
    stats = json.loads((await get(session, proxy.admin + "/admin/stats"))[1])
    assert stats["requests"] == {"HIT": 2, "STALE": 0, "MISS": 1, "BYPASS": 1, "SHADOW": 0}
    assert stats["reasons"] == {"absent": 1, "no_store": 1}
    assert (stats["hit_rate"], stats["store_entries"], stats["requests_running"]) == (2 / 3, 1, 0)


async def test_metrics_are_well_formed_and_bounded(client, proxy, session):
    """B80: random models, paths, namespaces and keys add no series; no value of a request is a label."""

    async def series() -> set[tuple]:
        text = (await get(session, proxy.admin + "/metrics"))[1].decode()
        families = text_string_to_metric_families(text)
        return {(s.name, tuple(sorted(s.labels.items()))) for f in families for s in f.samples}

    await client.chat()
    await client.send(method="GET", path="/v1/files")
    before = await series()
    for number in range(50):
        await client.chat(model=f'evil"\n{number}' * 50, key=f"k{number}", X_Cache_Namespace=f"n{number}")
        await client.send(method="GET", path=f"/secret-{number}")
    after = await series()
    assert after == before
    assert not any("evil" in str(s) or "secret" in str(s) for s in after)
    assert (
        "cacheproxy_requests_total",
        (("endpoint", "chat.completions"), ("reason", "absent"), ("source", "MISS")),
    ) in after


async def test_config_is_shown_without_secrets(start, session):
    proxy = await start(admin__token=TOKEN)
    status, body = await get(session, proxy.admin + "/admin/config", Authorization=f"Bearer {TOKEN}")
    assert status == 200
    assert TOKEN.encode() not in body
    assert json.loads(body)["exact"]["ttl"] == 3600.0


async def test_page_needs_no_other_host(proxy, session):
    """The page and its parts come from here, and its policy forbids anything else."""
    async with session.get(proxy.admin + "/") as answer:
        text = await answer.text()
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "http://" not in text and "https://" not in text and "//" not in text.replace("<!--", "")


async def test_unknown_paths_and_methods_in_the_error_form(proxy, session):
    assert (await get(session, proxy.admin + "/nothing"))[0] == 404
    async with session.get(proxy.admin + "/admin/drain") as answer:
        assert answer.status == 405
        assert json.loads(await answer.read())["error"]["code"] == "method_not_allowed"


async def test_drain_by_call(spawn, session):
    process = await spawn("--data-dir", "none", CACHEPROXY_DRAIN__GRACE="0")
    async with session.post(process.admin + "/admin/drain") as answer:
        assert answer.status == 202
    assert await process.exit() == 0


async def test_answers_that_the_disk_did_not_take_are_counted(start, session, backend, tmp_path):
    proxy = await start(store__data_dir=str(tmp_path), store__disk_bytes=1000)
    await rig.Client(proxy.base, session).chat()
    _, text = await get(session, proxy.admin + "/metrics")
    assert b"cacheproxy_store_dropped 1.0" in text


async def test_a_fault_of_our_own_is_an_answer_of_the_same_form(proxy, session, monkeypatch, caplog):
    def fail(_self):
        raise RuntimeError("SECRET-77")

    monkeypatch.setattr(type(proxy.house.telemetry), "summary", fail)
    status, body = await get(session, proxy.admin + "/admin/stats")
    assert (status, json.loads(body)["error"]["code"]) == (500, "internal_error")
    assert "an admin call failed inside the proxy: " in caplog.text
    assert not any(word in caplog.text + body.decode() for word in ("SECRET-77", "Traceback"))
