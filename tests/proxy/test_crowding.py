"""What the backends' side tells of how crowded it is: when an answer began, and what backends and their GPUs say."""

import asyncio

import pytest

from cacheproxy.core.standing import Standing
from cacheproxy.http.backend import Backends, Patience
from cacheproxy.http.balance import Balance
from cacheproxy.http.upstream import Upstream
from cacheproxy.ports import Outbound
from tests import rig
from tests.core.pages import LLAMA, MIG
from tests.fakes.backend import Backend


class Heard:
    """A limit that remembers its samples."""

    value = 4

    def __init__(self) -> None:
        self.samples: list[tuple[float, int, bool]] = []

    def sample(self, seconds: float, inflight: int, streamed: bool) -> None:
        self.samples.append((seconds, inflight, streamed))

    def failed(self) -> None:
        pass


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
async def test_an_answer_begins_with_its_body_not_with_its_head(backend, kind):
    """An engine may send the head at once and work for long then."""
    going, told = asyncio.Event(), Heard()

    async def early(exchange) -> None:
        await exchange.head(Content_Type=kind, Content_Length="4")
        await going.wait()
        await exchange.send(b"ab")
        await exchange.send(b"cd")

    backend.script = early
    upstreams = [Upstream(backend.url)]
    backends = Backends(upstreams, Patience(2.0, 10.0, 10.0), Balance(upstreams, limits=[told]), interval=0)
    reply = await backends.send(Outbound("POST", b"/v1/x", (), b"{}", standing=Standing(1, b"t")))
    sent = asyncio.get_running_loop().time()
    reading = asyncio.ensure_future(reply.read())
    for _ in range(5):
        await asyncio.sleep(0)
    assert told.samples == []
    worked = asyncio.get_running_loop().time() - sent
    going.set()
    data = await reading
    while len(data) < 4:
        data += await reply.read()
    reply.close()
    ((seconds, inflight, streamed),) = told.samples
    assert seconds >= worked
    assert (inflight, streamed) == (1, kind != "application/json")
    await backends.close()


async def test_gpus_of_a_backend_alone_are_heard(backend):
    async def page(exchange) -> None:
        text = {b"/metrics": LLAMA, b"/gpu/metrics": MIG}[exchange.seen.target]
        await exchange.head(Content_Type="text/plain", Content_Length=str(len(text)))
        await exchange.send(text.encode())

    backend.script = page
    exporter = await Backend().start()
    exporter.script = page
    upstream = Upstream(backend.url)
    backends = Backends(
        [upstream], Patience(2.0, 10.0, 10.0), interval=0.02, crowded=True,
        exporters={upstream: Upstream(exporter.url + "/gpu")},
    )  # fmt: skip
    backends.listen()
    await rig.until(lambda: backends.utilisation() == pytest.approx(0.7))
    await backends.close()
    await exporter.stop()
