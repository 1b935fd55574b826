"""The backends' own account of their load: that it is asked for, and that asking harms nobody."""

import asyncio
import logging

import pytest

from cacheproxy.core.affinity import Policy
from cacheproxy.errors import UpstreamTimeout
from cacheproxy.http import loads
from cacheproxy.http.backend import Backends, Patience
from cacheproxy.http.balance import Balance
from cacheproxy.http.connection import Dropped
from cacheproxy.http.loads import Loads, Reading
from cacheproxy.http.upstream import Upstream
from cacheproxy.ports import Outbound
from tests import rig
from tests.core.pages import LLAMA, VLLM
from tests.fakes.backend import Backend, plain
from tests.rig import BODY

MODELS = Outbound("GET", b"/v1/models", (), None)


class Talking:
    """A backend's script: healthy, and its page of metrics is what it is told to say."""

    def __init__(self) -> None:
        self.page = LLAMA
        self.asked: list[bytes] = []

    async def __call__(self, exchange) -> None:
        if not exchange.seen.target.endswith(b"/metrics"):
            await plain(exchange)
            return
        if callable(self.page):
            await self.page(exchange)
            return
        self.asked.append(exchange.seen.target)
        if self.page is None:
            await exchange.json({"error": "no such path"}, "404 Not Found")
        elif self.page == "silence":
            await exchange.gone()
        else:
            await exchange.head(Content_Type="text/plain; version=0.0.4", Content_Length=str(len(self.page)))
            await exchange.send(self.page.encode())


@pytest.fixture
async def talking(backend):
    """Two backends whose pages can be set; their scripts."""
    second = await Backend().start()
    scripts = []
    for fake in (backend, second):
        fake.script = Talking()
        fake.script.backend = fake
        scripts.append(fake.script)
    yield scripts
    await second.stop()


@pytest.fixture
async def build(talking):
    """Backends over the two that have begun to look at their metrics."""
    built: list[Backends] = []

    async def make(
        policy: Policy = Policy.AFFINITY, *, interval: float = 0.02, path: str = "", only: int = 2
    ) -> Backends:
        upstreams = [Upstream(script.backend.url + path) for script in talking[:only]]
        balance = Balance(upstreams, policy=policy)
        built.append(Backends(upstreams, Patience(2.0, 10.0, 10.0), balance, interval=interval))
        await ask(built[-1])
        return built[-1]

    yield make
    for backends in built:
        await backends.close()


async def ask(backends: Backends, times: int = 1) -> None:
    for _ in range(times):
        reply = await backends.send(MODELS)
        while await reply.read():
            pass
        reply.close()


def column(backends: Backends, name: str) -> list:
    return [row[name] for row in backends.rows()]


async def test_waiting_work_is_passed_over(build, talking):
    """Read from the page beside the API, and read again: when it has caught up it takes requests as before."""
    backends = await build()
    talking[0].page = LLAMA.replace("deferred 0", "deferred 3")
    await rig.until(lambda: column(backends, "waiting") == [3, 0])
    before = [len(models(script)) for script in talking]
    await ask(backends, 6)
    assert [len(models(script)) for script in talking] == [before[0], before[1] + 6]
    talking[0].page = LLAMA
    await rig.until(lambda: column(backends, "waiting") == [0, 0])
    await ask(backends, 6)
    assert len(models(talking[0])) == before[0] + 3


def models(script: Talking) -> list:
    return [seen for seen in script.backend.seen if seen.target.endswith(b"/v1/models")]


async def test_a_proxy_reads_them_by_itself(start, session, talking):
    """With several backends and nothing configured, from the first request on."""
    talking[0].page = talking[1].page = VLLM
    proxy = await start(upstream=[script.backend.url for script in talking])
    await asyncio.sleep(0)
    assert talking[0].asked == talking[1].asked == []
    assert (await rig.Client(proxy.base, session).send(BODY)).status == 200
    await rig.until(lambda: column(proxy.house.backends, "kv_usage") == [0.5, 0.5])
    assert talking[0].asked == [b"/metrics"]


@pytest.mark.parametrize(("path", "target"), [("", b"/metrics"), ("/v1", b"/metrics"), ("/llm/v1/", b"/llm/metrics")])
async def test_the_page_is_beside_the_api(build, talking, path, target):
    await build(path=path)
    await rig.until(lambda: all(script.asked for script in talking))
    assert {found for script in talking for found in script.asked} == {target}


async def test_no_credential_goes_with_it(build, talking):
    backends = await build()
    reply = await backends.send(Outbound("GET", b"/v1/models", ((b"Authorization", b"Bearer secret"),), None))
    reply.close()
    await rig.until(lambda: all(len(script.asked) > 2 for script in talking))
    for script in talking:
        pages = [seen for seen in script.backend.seen if seen.target == b"/metrics"]
        assert [seen.method for seen in pages] == [b"GET"] * len(pages)
        assert b"secret" not in b"".join(seen.raw for seen in pages)


@pytest.mark.parametrize("page", [None, "nonsense", LLAMA + "#" * loads.MOST_BYTES])
async def test_who_has_no_metrics_is_left_alone(build, talking, caplog, page):
    """404, nonsense, endless pages: asked once, and again after minutes; the other one's page is read all the same."""
    caplog.set_level(logging.DEBUG)
    talking[0].page = page
    backends = await build()
    await rig.until(lambda: len(talking[1].asked) >= 5)
    assert len(talking[0].asked) == 1
    assert column(backends, "running") == [None, 1]
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


async def test_a_page_without_end_is_not_read_on(build, talking):
    """Its connection is cut as soon as it is too long, and it is asked again after minutes."""
    sent = 0

    async def endless(exchange) -> None:
        nonlocal sent
        talking[0].asked.append(exchange.seen.target)
        await exchange.head(Content_Type="text/plain", Transfer_Encoding="chunked")
        while True:
            await exchange.chunk(b"#" * 65_536)
            sent += 65_536

    talking[0].page = endless
    await build()
    await rig.until(lambda: len(talking[1].asked) >= 5)
    await rig.until(lambda: talking[0].backend.open <= 1)
    assert len(talking[0].asked) == 1
    assert sent <= 16 * loads.MOST_BYTES  # what the system's buffers hold included


async def test_who_has_no_metrics_is_asked_again_later(build, talking, monkeypatch):
    monkeypatch.setattr(loads, "AGAIN_SECONDS", 0.1)
    talking[0].page = None
    backends = await build()
    await rig.until(lambda: len(talking[0].asked) >= 2)
    talking[0].page = LLAMA
    await rig.until(lambda: column(backends, "running") == [1, 1])


async def test_a_page_that_does_not_come_is_not_waited_for(build, talking, monkeypatch):
    """Its backend answers meanwhile, and is asked again; the other's page is read in its time."""
    monkeypatch.setattr(loads, "ANSWER_SECONDS", 0.05)
    talking[0].page = "silence"
    backends = await build()
    await rig.until(lambda: len(talking[0].asked) >= 3 and len(talking[1].asked) >= 3)
    assert column(backends, "running") == [None, 1]
    await ask(backends, 4)
    talking[0].page = LLAMA
    await rig.until(lambda: column(backends, "running") == [1, 1])


async def test_an_old_reading_does_not_count(build, talking, monkeypatch):
    monkeypatch.setattr(loads, "ANSWER_SECONDS", 0.05)
    talking[0].page = LLAMA.replace("deferred 0", "deferred 3")
    backends = await build()
    await rig.until(lambda: column(backends, "waiting") == [3, 0])
    talking[0].page = "silence"
    await rig.until(lambda: column(backends, "waiting") == [None, 0])
    await ask(backends, 4)
    assert models(talking[0])


async def test_a_backend_that_is_gone_is_passed_over_before_a_request_meets_it(build, talking, caplog):
    """It rests, and that is said once; when it is back it is read again."""
    backends = await build()
    await rig.until(lambda: column(backends, "running") == [1, 1])
    await talking[0].backend.stop()
    await rig.until(lambda: column(backends, "resting") == [True, False])
    await rig.until(lambda: column(backends, "running") == [None, 1])
    await ask(backends, 4)
    assert len([record for record in caplog.records if "cannot be reached" in record.message]) == 1
    await talking[0].backend.start()
    await rig.until(lambda: column(backends, "running") == [1, 1])
    assert column(backends, "resting") == [False, False]


@pytest.mark.parametrize(
    ("options", "why"),
    [({"policy": Policy.ROUND_ROBIN}, "no choice by it"), ({"interval": 0}, "switched off"), ({"only": 1}, "alone")],
)
async def test_nobody_is_asked_where_nothing_depends_on_it(build, talking, options, why):
    before = asyncio.all_tasks()
    backends = await build(**options)
    await ask(backends, 3)
    assert backends._loads._task is None, why
    assert not [task for task in asyncio.all_tasks() - before if "_read_on" in repr(task)]
    assert [script.asked for script in talking] == [[], []]


async def test_closing_ends_it(build, talking):
    """Nothing is asked after `close`, nothing is left running, and no later request begins it again."""
    backends = await build()
    talking[0].page = "silence"
    await rig.until(lambda: all(script.asked for script in talking))
    await backends.close()
    await backends.close()
    assert not [task for task in asyncio.all_tasks() if "_read" in repr(task.get_coro())]
    asked = [len(script.asked) for script in talking]
    await ask(backends, 3)
    await asyncio.sleep(0.1)  # five intervals in which nothing may happen
    assert [len(script.asked) for script in talking] == asked
    for upstream in backends._upstreams:
        upstream.close()


async def test_a_connection_serves_many_pages(build, talking):
    backends = await build()
    await rig.until(lambda: all(len(script.asked) >= 5 for script in talking))
    assert all(script.backend.connections <= 2 for script in talking)
    assert column(backends, "inflight") == [0, 0]
    await ask(backends, 3)
    assert len([task for task in asyncio.all_tasks() if "_read_on" in repr(task.get_coro())]) == 1


@pytest.mark.parametrize(
    "error", [OSError("no"), UpstreamTimeout("no"), TimeoutError(), ConnectionResetError(), Dropped()], ids=repr
)
async def test_no_failure_ends_the_reading(error):
    """Whatever one read ends with, the next is made."""
    upstreams, failed = [Upstream("http://a"), Upstream("http://b")], []
    asked: list[Upstream] = []

    async def fetch(upstream: Upstream) -> bytes:
        asked.append(upstream)
        if upstream is upstreams[0]:
            raise error
        return LLAMA.encode()

    reading = Loads(upstreams, fetch, 0.005, lambda upstream, why: failed.append((upstream, why)))
    reading.begin()
    reading.begin()
    await rig.until(lambda: asked.count(upstreams[0]) >= 3)
    assert (reading.of(upstreams[0]), reading.of(upstreams[1])) == (None, Reading(1, 0, None, full=False))
    assert repr(reading) == "<Loads 1 of 2 read>"
    assert failed == [] or {upstream for upstream, _ in failed} == {upstreams[0]}
    refused = isinstance(error, OSError) and not isinstance(error, TimeoutError)
    assert bool(failed) == refused
    await reading.close()


async def test_what_is_closed_does_not_begin():
    asked: list[Upstream] = []

    async def fetch(upstream: Upstream) -> bytes:
        asked.append(upstream)
        return b""

    reading = Loads([Upstream("http://a"), Upstream("http://b")], fetch, 0.005, lambda *_: None)
    await reading.close()
    reading.begin()
    for _ in range(5):
        await asyncio.sleep(0)
    assert asked == []
