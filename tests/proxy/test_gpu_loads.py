"""The account of GPUs beside their backends', and that of a backend alone."""

import asyncio

import pytest

from cacheproxy.errors import UpstreamTimeout
from cacheproxy.http.connection import Dropped
from cacheproxy.http.loads import Loads, Reading
from cacheproxy.http.upstream import Upstream
from tests import rig
from tests.core.pages import LLAMA, MIG, NEW_VLLM, V100


class Exporter:
    """The pages that are fetched of a backend and of its GPUs, which can be set: bytes, nothing, or an error."""

    def __init__(self) -> None:
        self.pages: dict[Upstream, str | Exception | None] = {}
        self.asked: list[Upstream] = []

    async def fetch(self, upstream: Upstream) -> bytes | None:
        self.asked.append(upstream)
        page = self.pages.get(upstream)
        if isinstance(page, Exception):
            raise page
        return None if page is None else page.encode()


@pytest.fixture
async def watching():
    """Makes `Loads` that end with the test."""
    made: list[Loads] = []

    def make(upstreams, engines: Exporter, gpus: dict[Upstream, Exporter] | None = None, **options) -> Loads:
        exporters = {upstream: of.fetch for upstream, of in (gpus or {}).items()}
        made.append(
            Loads(upstreams, engines.fetch, 0.005, options.pop("told", lambda *_: None), exporters=exporters, **options)
        )
        made[-1].begin()
        return made[-1]

    yield make
    for loads_ in made:
        await loads_.close()


async def test_a_backend_alone_is_read_if_somebody_needs_it(watching):
    one, engine = Upstream("http://a"), Exporter()
    engine.pages[one] = NEW_VLLM
    reading = watching([one], engine, alone=True)
    await rig.until(lambda: reading.of(one) == Reading(3, 0, 0.92, full=False))
    assert reading.utilisation() == 0.92
    await reading.close()
    asked = len(engine.asked)
    nobody = watching([one], engine)
    for _ in range(5):
        await asyncio.sleep(0)
    assert (nobody.of(one), nobody.utilisation(), len(engine.asked)) == (None, None, asked)


async def test_gpus_are_read_beside_their_backend(watching):
    one, two = Upstream("http://a"), Upstream("http://b")
    engine, gpus = Exporter(), Exporter()
    engine.pages = {one: NEW_VLLM, two: LLAMA}
    gpus.pages = {two: MIG}
    reading = watching([one, two], engine, {two: gpus})
    await rig.until(lambda: reading.of(one) and (found := reading.of(two)) and found.gpu is not None)
    assert reading.of(one) == Reading(3, 0, 0.92, full=False)
    assert reading.of(two) == Reading(1, 0, None, full=False, gpu=pytest.approx(0.7))
    assert reading.utilisation() == pytest.approx((0.92 + 0.7) / 2)
    assert set(gpus.asked) == {two}
    assert repr(reading) == "<Loads 2 of 2 read>"


async def test_gpus_are_heard_where_the_backend_says_nothing(watching):
    """It has no reading that others could take for an idle backend's; its GPUs count all the same."""
    one, engine, gpus = Upstream("http://a"), Exporter(), Exporter()
    gpus.pages[one] = V100
    reading = watching([one], engine, {one: gpus}, alone=True)
    await rig.until(lambda: reading.utilisation() is not None)
    assert reading.utilisation() == pytest.approx(0.6)
    assert reading.of(one) is None


@pytest.mark.parametrize("why", [OSError("no"), UpstreamTimeout("no"), Dropped(), None, "nonsense"], ids=repr)
async def test_an_exporter_that_fails_harms_nobody(watching, why):
    """No backend is thought unreachable for it, and its own page is read on."""
    told: list[Upstream] = []
    one, engine, gpus = Upstream("http://a"), Exporter(), Exporter()
    engine.pages[one], gpus.pages[one] = NEW_VLLM, why
    reading = watching([one], engine, {one: gpus}, alone=True, told=lambda upstream, _: told.append(upstream))
    again = 1 if why in (None, "nonsense") else 3
    await rig.until(lambda: len(gpus.asked) >= again and len(engine.asked) >= 5)
    assert reading.of(one) == Reading(3, 0, 0.92, full=False)
    assert told == []
    assert len(gpus.asked) == 1 or again == 3


async def test_what_gpus_said_long_ago_does_not_count(watching):
    one, engine, gpus = Upstream("http://a"), Exporter(), Exporter()
    engine.pages[one], gpus.pages[one] = LLAMA, V100
    reading = watching([one], engine, {one: gpus}, alone=True)
    await rig.until(lambda: reading.utilisation() is not None)
    gpus.pages[one] = OSError("gone")
    await rig.until(lambda: reading.utilisation() is None)
    assert reading.of(one) == Reading(1, 0, None, full=False)
