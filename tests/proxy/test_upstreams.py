"""Several backends of which some do not do well: what callers get, who is passed over, and who is given requests again."""

import asyncio
import json
import logging

import pytest

from cacheproxy.core import retries
from cacheproxy.core.affinity import Policy
from cacheproxy.core.health import Terms
from cacheproxy.core.rules import globs
from cacheproxy.core.standing import Standing
from cacheproxy.errors import CircuitOpen, UpstreamTimeout, UpstreamUnreachable
from cacheproxy.http import models
from cacheproxy.http.backend import Backends, Patience, Watching
from cacheproxy.http.balance import Balance
from cacheproxy.http.upstream import Upstream
from cacheproxy.ports import Outbound
from tests import rig
from tests.fakes.backend import Backend, completion, gives, plain
from tests.proxy import wire
from tests.proxy.doors import Caller
from tests.rig import BODY

PATIENCE, NOT = Patience(2.0, 10.0, 10.0), Watching()


@pytest.fixture
async def three(backend):
    """Three healthy backends."""
    fakes = [backend, await Backend().start(), await Backend().start()]
    yield fakes
    for fake in fakes[1:]:
        await fake.stop()
        assert fake.errors == []


@pytest.fixture
async def build():
    """Backends over fakes: ``backends = build(fakes, policy, failures=2)``; no metrics are read."""
    built: list[Backends] = []

    def make(
        fakes, policy=Policy.ROUND_ROBIN, *, patience=PATIENCE, serving=None, watching=NOT, journal=None,
        **terms,
    ) -> Backends:  # fmt: skip
        patterns = serving or [()] * len(fakes)
        upstreams = [Upstream(fake.url, 1.0, globs(some)) for fake, some in zip(fakes, patterns, strict=True)]
        balance = Balance(upstreams, policy=policy, terms=Terms(**{"slow_start": 0.0, **terms}))
        built.append(
            Backends(upstreams, patience, balance, interval=0, watching=watching, journal=journal)
        )  # fmt: skip
        return built[-1]

    yield make
    for backends in built:
        assert [(row["inflight"], row["slots_used"]) for row in backends.rows()] == [(0, 0)] * len(backends.rows())
        await backends.close()


def asking(model: str = "m", tenant: bytes = b"a") -> Outbound:
    """A request that takes a slot."""
    return Outbound("POST", rig.CHAT.encode(), (), b"{}", None, Standing(1, tenant, model=model))


async def whole(backends: Backends, request: Outbound | None = None) -> tuple[int, bytes]:
    reply = await backends.send(request or asking())
    body = b""
    try:
        while data := await reply.read():
            body += data
    finally:
        reply.close()
    return reply.status, body


def column(backends: Backends, name: str) -> list:
    return [row[name] for row in backends.rows()]


async def hangs(exchange) -> None:
    """A head, and nothing after it."""
    if b"completions" not in exchange.seen.target:
        await plain(exchange)
        return
    await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n")
    await exchange.gone()


async def silent(exchange) -> None:
    if b"completions" in exchange.seen.target:
        await exchange.gone()
    else:
        await plain(exchange)


# --- one refuses, one hangs, one does well -----------------------------------------------------------------------

QUICK = {
    "limits__idle_timeout": "300ms", "health__open": "200ms", "health__ejection": "400ms", "health__slow_start": "0",
    "prefix__load_interval": "0",
}  # fmt: skip


@pytest.mark.parametrize("policy", list(Policy))
async def test_of_three_that_fare_differently_callers_notice_little_and_the_others_come_back(
    start, session, three, policy
):
    """Who meets the hanging one loses its timeout and no more, and that only until it is ejected; nobody notices the
    refusing one; both are given requests again without a restart."""
    refusing, hanging, healthy = three
    await refusing.stop()
    hanging.script = hangs
    options = {**QUICK, "health__ejection": "1h"}
    proxy = await start(upstream=[fake.url for fake in three], prefix__routing=policy, **options)
    client, number, loop = rig.Client(proxy.base, session), 0, asyncio.get_running_loop()

    async def ask() -> tuple[bool, float]:
        nonlocal number
        number += 1
        system = f"{chr(107 + number % 15) * 3} number {number // 15 % 40 * 'x'}. {'Be kind to everybody. ' * 200}"
        user = {"role": "user", "content": f"question {number}"}
        body = {"model": "m", "messages": [{"role": "system", "content": system}, user]}
        began = loop.time()
        answer = await client.send(body)
        return answer.status == 200, loop.time() - began

    backends = proxy.house.backends
    failed = []
    while column(backends, "state")[1] != "ejected":
        told = await asyncio.gather(*(ask() for _ in range(4)))
        failed += [seconds for well, seconds in told if not well]
        assert number < 200
    assert failed and max(failed) < 1.5
    told = [await ask() for _ in range(60)]
    assert all(well for well, _ in told)
    assert healthy.calls >= 60
    assert {row["inflight"] for row in backends.rows()} == {0}

    await refusing.start()
    hanging.script = plain
    station = backends.balance.stations[1]
    station.health._until = 0.0  # the hour is over
    backends.balance._woken(1)
    before, since = [fake.calls for fake in three], loop.time()
    while any(fake.calls < count + 3 for fake, count in zip(three, before, strict=True)):
        assert (await ask())[0]
        assert loop.time() < since + 20
    assert column(backends, "state") == ["well"] * 3


async def test_one_that_hangs_still_costs_one_caller_each_time_it_is_tried(build, three):
    backends = build(three[:2], patience=Patience(2.0, 10.0, 0.05), failures=2, ejection=0.2)
    three[0].script = hangs
    errors = 0
    while column(backends, "state")[0] == "well":
        try:
            await whole(backends)
        except UpstreamTimeout:
            errors += 1
    assert errors == 2
    for trial in range(2):
        await rig.until(lambda: column(backends, "state")[0] == "half-open")
        told = await asyncio.gather(*(whole(backends) for _ in range(20)), return_exceptions=True)
        assert [type(one) for one in told if isinstance(one, BaseException)] == [UpstreamTimeout]
        assert column(backends, "state")[0] == "ejected", trial
    assert column(backends, "ejections") == [1, 0]


async def test_one_that_hangs_altogether_costs_nobody_anything_more(build, three):
    """Before a caller's request tries it, it is asked for its list of models; while that hangs too it is left alone."""

    async def hangs_always(exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n")
        await exchange.gone()

    backends = build(three[:2], patience=Patience(2.0, 10.0, 0.05), failures=2, ejection=0.1)
    three[0].script = hangs_always
    while column(backends, "state")[0] == "well":
        await asyncio.gather(*(whole(backends) for _ in range(2)), return_exceptions=True)
    calls = three[0].calls
    asked = [b"/v1/models"] * 3
    while [seen.target for seen in three[0].seen if seen.method == b"GET"][:3] != asked:
        assert (await whole(backends))[0] == 200
    assert (three[0].calls, column(backends, "state")[0]) == (calls, "ejected")
    three[0].script = plain
    while column(backends, "state")[0] != "well":
        assert (await whole(backends))[0] == 200


async def test_closing_does_not_wait_for_one_that_hangs(build, three):
    """Not for the question that it is asked before it is tried either."""
    asked = asyncio.Event()

    async def hangs_always(exchange) -> None:
        if exchange.seen.method == b"GET":
            asked.set()
        await exchange.gone()

    backends = build(three[:2], patience=Patience(2.0, 0.05, 10.0), failures=1, open=0.05)
    three[0].script = hangs_always
    await asyncio.gather(*(whole(backends) for _ in range(2)), return_exceptions=True)
    backends._patience = Patience(2.0, 60.0, 60.0)
    await asyncio.wait_for(asked.wait(), 10)
    before = asyncio.get_running_loop().time()
    await backends.close()
    assert asyncio.get_running_loop().time() - before < 2.0
    assert not [task for task in asyncio.all_tasks() if "_ask" in repr(task.get_coro())]


async def test_who_leaves_says_nothing_of_the_backend(build, three):
    """Neither good nor bad: callers leave because it hangs, and because they have what they want."""
    backends = build(three[:2], patience=Patience(2.0, 10.0, 0.05), failures=2)
    three[0].script = hangs
    told = await asyncio.gather(*(whole(backends) for _ in range(2)), return_exceptions=True)
    assert sum(isinstance(one, UpstreamTimeout) for one in told) == 1
    for reply in [await backends.send(asking()) for _ in range(4)]:
        reply.close()
    assert column(backends, "state") == ["well", "well"]
    told = await asyncio.gather(*(whole(backends) for _ in range(2)), return_exceptions=True)
    assert sum(isinstance(one, UpstreamTimeout) for one in told) == 1
    assert column(backends, "state") == ["ejected", "well"]


async def test_lists_of_models_do_not_hide_that_chats_fail(build, three):
    """They need nothing of what generates."""

    async def failing(exchange) -> None:
        if exchange.seen.method == b"GET":
            await plain(exchange)
        else:
            await exchange.json({"error": {}}, "500 Internal Server Error")

    three[0].script = failing
    backends = build(three[:2], failures=3)
    for _ in range(6):
        await whole(backends, Outbound("GET", b"/v1/models", (), None))
        await whole(backends, Outbound("GET", b"/v1/models", (), None))
        await whole(backends)
    assert column(backends, "state") == ["ejected", "well"]


async def test_one_that_takes_requests_and_is_silent_is_given_nothing(build, three):
    backends = build(three[:2], patience=Patience(2.0, 0.1, 10.0), failures=2, open=0.2)
    three[0].script = silent
    told = await asyncio.gather(*(whole(backends) for _ in range(6)), return_exceptions=True)
    assert sum(isinstance(one, UpstreamTimeout) for one in told) == 3
    assert column(backends, "state") == ["open", "well"]
    calls = three[0].calls
    for _ in range(10):
        assert (await whole(backends))[0] == 200
    assert three[0].calls == calls
    three[0].script = plain
    await rig.until(lambda: column(backends, "state")[0] == "half-open")
    for _ in range(4):
        assert (await whole(backends))[0] == 200
    assert column(backends, "state") == ["well", "well"]


async def test_many_timeouts_of_one_alone_shut_nobody_out(start, session, backend):
    """There is no other to be given the next request: it is answered at once."""
    backend.script = silent
    proxy = await start(limits__first_byte_timeout="100ms")
    client = rig.Client(proxy.base, session)
    told = await asyncio.gather(*(client.chat(seed=number) for number in range(20)))
    assert {answer.status for answer in told} == {504}
    backend.script = plain
    assert (await client.chat()).status == 200
    assert column(proxy.house.backends, "inflight") == [0]


# --- the circuit -------------------------------------------------------------------------------------------------


async def test_one_alone_that_refuses_connections_is_left_alone_and_back_at_once(start, session, backend):
    """The first callers learn that it could not be reached, the next that it is not asked now and when to come again;
    a second after it is back at the latest it answers."""
    proxy = await start()
    client = rig.Client(proxy.base, session)
    await backend.stop()
    for number in range(5):
        answer = await client.chat(seed=number)
        assert (answer.status, answer.json["error"]["code"]) == (502, "upstream_unreachable")
    for path in (rig.CHAT, "/v1/other"):
        answer = await client.send(BODY, path=path)
        assert (answer.status, answer.json["error"]["code"]) == (503, "circuit_open")
        assert (answer.get("retry-after"), answer.get("x-should-retry")) == ("1", "true")
    await backend.start()
    loop = asyncio.get_running_loop()
    since = loop.time()
    while (await client.chat()).status != 200:
        assert loop.time() < since + 5
    assert loop.time() - since < 1.5
    assert column(proxy.house.backends, "state") == ["well"]


async def test_a_change_of_state_is_one_line(build, three, caplog):
    caplog.set_level(logging.INFO, "cacheproxy")
    backends = build(three[:1], failures=3, open=0.1)
    await three[0].stop()
    for _ in range(3):
        with pytest.raises(UpstreamUnreachable):
            await whole(backends)
    for _ in range(10):
        with pytest.raises(CircuitOpen):
            await whole(backends)
    await three[0].start()
    await rig.until(lambda: column(backends, "state") == ["half-open"])
    await whole(backends)
    url = f"http://127.0.0.1:{three[0].port}"
    told = [record.getMessage() for record in caplog.records if record.name == "cacheproxy.backend"]
    assert told[0].startswith(f"backend {url} cannot be reached: ")
    assert told[1:] == [
        f"backend {url} is given nothing for now: it cannot be connected to", f"backend {url} is well again",
    ]  # fmt: skip


@pytest.mark.parametrize("slot", [True, False])
async def test_a_trial_whose_caller_leaves_makes_room_for_the_next(build, three, monkeypatch, slot):
    backends = build(three[:1], failures=1, open=0.05)
    request = asking() if slot else Outbound("GET", b"/v1/files", (), None)
    await three[0].stop()
    with pytest.raises(UpstreamUnreachable):
        await whole(backends)
    await three[0].start()
    await rig.until(lambda: column(backends, "state") == ["half-open"])
    connect, waiting = Upstream.connect, asyncio.Event()

    async def never(_: Upstream):
        waiting.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Upstream, "connect", never)
    task = asyncio.create_task(whole(backends, request))
    await asyncio.wait_for(waiting.wait(), 5)
    with pytest.raises(CircuitOpen):
        await whole(backends)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    monkeypatch.setattr(Upstream, "connect", connect)
    assert (await whole(backends))[0] == 200


async def test_a_caller_with_a_slot_may_vanish_at_every_await(build, three):
    """Nothing stays counted, and nobody is blamed for it."""
    backends = build(three[:2])
    for turns in range(200):
        task = asyncio.create_task(whole(backends))
        for _ in range(turns % 30):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert column(backends, "slots_used") == [0, 0]
    assert column(backends, "state") == ["well", "well"]
    assert column(backends, "ejections") == [0, 0]


# --- what backends ask for ---------------------------------------------------------------------------------------


async def test_a_backend_that_asks_for_rest_is_passed_over_and_its_answer_is_the_caller_s(start, session, three):
    proxy = await start(upstream=[fake.url for fake in three[:2]], prefix__routing="round-robin")
    client = rig.Client(proxy.base, session)
    for fake in three[:2]:
        fake.script = gives({"error": {"message": "busy"}}, "503 Service Unavailable", b"Retry-After: 30\r\n")
    told = [await client.chat(seed=number) for number in range(2)]
    assert [(answer.status, answer.get("retry-after"), answer.json) for answer in told] == [
        (503, "30", {"error": {"message": "busy"}})
    ] * 2
    three[1].script = plain
    proxy.house.backends.balance.stations[1].health._asked_until = 0.0  # its time is over
    before = three[0].calls
    assert [(await client.chat(seed=number)).status for number in range(10, 16)] == [200] * 6
    assert three[0].calls == before
    assert column(proxy.house.backends, "resting") == [True, False]


async def test_too_many_requests_of_one_credential_rest_the_backend_for_that_one(build, three):
    """Of hosted backends: each key has its own limits."""
    limited = {b"a"}

    async def script(exchange) -> None:
        if exchange.seen.get(b"x-tenant") in limited:
            await exchange.json({"error": {}}, "429 Too Many Requests", b"Retry-After: 20\r\n")
        else:
            await exchange.json(completion())

    three[0].script = script
    backends = build(three[:2])

    def by(tenant: bytes) -> Outbound:
        fields = ((b"X-Tenant", tenant),)
        return Outbound("POST", rig.CHAT.encode(), fields, b"{}", None, Standing(1, tenant, model="m"))

    told = [(await whole(backends, by(b"a")))[0] for _ in range(6)]
    assert sorted(told) == [200] * 5 + [429]
    assert three[0].calls == 1
    for _ in range(4):
        await whole(backends, by(b"b"))
    assert three[0].calls == 3
    assert column(backends, "resting") == [False, False]
    await three[1].stop()
    assert (await whole(backends, by(b"a")))[0] == 429, "there is no other"
    for _ in range(5):
        three_gone = backends.balance.stations[1]
        backends.balance.refused(three_gone, OSError())
    assert column(backends, "state") == ["well", "open"]
    assert (await whole(backends, by(b"a")))[0] == 429, "nor is there one that may be asked"


# --- retries -----------------------------------------------------------------------------------------------------


class Counting:
    """A journal that keeps what is counted."""

    def __init__(self) -> None:
        self.counted: list[tuple[str, str]] = []

    def count(self, event: str, label: str = "") -> None:
        self.counted.append((event, label))


async def test_retries_have_a_budget(build, three, monkeypatch):
    """What is above it fails as it would without others, and both are counted."""
    monkeypatch.setattr(retries, "FLOOR", 2)
    await three[0].stop()
    journal = Counting()
    backends = build(three[:2], journal=journal, watching=Watching(retries=0.0), failures=1000)
    told = []
    for _ in range(8):
        for station in backends.balance.stations:
            station.health._unreached_until = 0.0
        told.append((await asyncio.gather(whole(backends), return_exceptions=True))[0])
    failed = [one for one in told if isinstance(one, UpstreamUnreachable)]
    assert (len(failed), len(told) - len(failed)) == (2, 6)
    assert journal.counted == [("upstream_retries", "retried")] * 2 + [("upstream_retries", "denied")] * 2


async def test_retries_are_a_metric(start, session, three):
    await three[0].stop()
    proxy = await start(
        upstream=[fake.url for fake in three[:2]], prefix__routing="round-robin", prefix__load_interval=0
    )
    client = rig.Client(proxy.base, session)
    for number in range(3):
        assert (await client.chat(seed=number)).status == 200
    async with session.get(proxy.admin + "/metrics") as answer:
        assert 'cacheproxy_upstream_retries_total{result="retried"} 1.0' in await answer.text()


@pytest.mark.parametrize("status", ["500 Internal Server Error", "503 Service Unavailable", "429 Too Many Requests"])
async def test_after_a_status_there_is_no_other_try(build, three, status):
    for fake in three:
        fake.script = gives({"error": {}}, status)
    backends = build(three)
    assert (await whole(backends))[0] == int(status[:3])
    assert sum(fake.calls for fake in three) == 1


async def test_who_has_waited_goes_through_the_gate_again_without_the_one_that_was_unreachable(build, three):
    await three[0].stop()
    backends = build(three[:2])
    entered = []

    class Gate:
        async def enter(self, standing, route, avoid=()):
            entered.append((standing, list(avoid)))
            return backends.balance.take(3, route, avoid)

    backends.admission = Gate()
    requests = [asking(), asking()]
    for request in requests:
        await whole(backends, request)
    dead = backends.upstreams[0]
    assert sorted(len(avoid) for _, avoid in entered) == [0, 0, 1]
    assert [avoid for _, avoid in entered if avoid] == [[dead]]
    assert {id(standing) for standing, _ in entered} == {id(request.standing) for request in requests}


# --- models ------------------------------------------------------------------------------------------------------


def lists(*names: str, **more):
    """A script: healthy, and it serves these models."""

    async def script(exchange) -> None:
        if exchange.seen.target == b"/v1/models":
            assert exchange.seen.get(b"authorization") is None
            await exchange.json({"object": "list", "data": [{"id": name, **more} for name in names]})
        else:
            await plain(exchange)

    return script


WATCHED = Watching(models=0.02)


async def test_requests_go_to_those_that_serve_the_model(build, three):
    """By the list of each; what nobody lists goes to all."""
    for fake, names in zip(three, (["a", "both"], ["b", "both"], ["c:latest"]), strict=True):
        fake.script = lists(*names)
    backends = build(three, watching=WATCHED)
    backends.begin()
    await rig.until(lambda: all(station.listed for station in backends.balance.stations))
    for model, expected in (
        ("a", [6, 0, 0]),
        ("b", [0, 6, 0]),
        ("both", [3, 3, 0]),
        ("c", [0, 0, 6]),
        ("x", [2, 2, 2]),
    ):
        before = [fake.calls for fake in three]
        for _ in range(6):
            await whole(backends, asking(model))
        assert [fake.calls - count for fake, count in zip(three, before, strict=True)] == expected, model


async def test_patterns_of_the_configuration_go_before_what_is_listed(build, three):
    three[0].script = lists("gpt-5")
    backends = build(three[:2], serving=[["llama-*", "m?"], []], watching=WATCHED)
    three[1].script = lists("gpt-5")
    backends.begin()
    await rig.until(lambda: backends.balance.stations[1].listed is not None)
    group = backends.balance.group
    assert [group(name) for name in ("llama-3", "m1", "m12", "gpt-5", "")] == [1, 1, 3, 2, 3]
    assert b"/v1/models" not in [seen.target for seen in three[0].seen]


async def test_one_that_does_not_say_may_serve_anything_and_trouble_forgets_nothing(build, three):
    async def refuses(exchange) -> None:
        if exchange.seen.target == b"/v1/models":
            await exchange.json({"error": {}}, "401 Unauthorized")
        else:
            await plain(exchange)

    three[0].script, three[1].script, three[2].script = lists("a"), lists("b"), refuses
    backends = build(three, watching=WATCHED)
    backends.begin()
    balance = backends.balance
    await rig.until(lambda: all(station.listed for station in balance.stations[:2]))
    assert [balance.group(name) for name in ("a", "b", "x")] == [0b101, 0b110, 0b111]
    three[0].script = gives({}, "500 Internal Server Error")
    three[1].script = refuses
    await rig.until(lambda: balance.stations[1].listed is None)
    asked = len(three[0].seen)
    await rig.until(lambda: len(three[0].seen) > asked + 3)
    assert balance.group("a") == 0b111
    assert balance.stations[0].listed == {"a"}


@pytest.mark.parametrize(
    ("body", "names"),
    [(b'{"data": [{"id": "a"}, {"id": "b", "aliases": ["c"]}]}', {"a", "b", "c"}), (b'{"data": []}', None), (b"[]", None),
     (b"<html>", None), (b'{"data": [1, {"id": 2}, {"name": "x"}]}', None), (b"", None), (b'{"data": {"id": "a"}}', None),
     (json.dumps({"data": [{"id": str(n)} for n in range(models.MOST + 1)]}).encode(), None)],
    ids=range(8),
)  # fmt: skip
def test_a_list_of_models_is_read_or_says_nothing(body, names):
    assert models.read(body) == names


@pytest.mark.parametrize("fakes", [1, 2])
async def test_nobody_is_asked_for_models_where_nothing_depends_on_it(build, three, fakes):
    """One backend alone; or all of whose models are in the configuration."""
    serving = [["a"], ["b"]] if fakes == 2 else [[]]
    backends = build(three[:fakes], serving=serving, watching=WATCHED)
    await whole(backends, asking("a"))
    await asyncio.sleep(0.1)
    assert [seen.target for fake in three for seen in fake.seen] == [rig.CHAT.encode()]


async def test_closing_ends_what_looks_after_them(build, three):
    before = asyncio.all_tasks()
    backends = build(three, watching=Watching(models=0.01, probe="/health", interval=0.01))
    await whole(backends)
    await rig.until(lambda: all(len(fake.seen) > 5 for fake in three))
    await backends.close()
    await backends.close()
    assert not [task for task in asyncio.all_tasks() - before if "_look_on" in repr(task)]
    await whole(backends)
    assert not [task for task in asyncio.all_tasks() - before if "_look_on" in repr(task)]


# --- probes ------------------------------------------------------------------------------------------------------


class Ailing:
    """A script: chats are answered; `/health` says what it is told to."""

    def __init__(self) -> None:
        self.status, self.asked = "200 OK", 0

    async def __call__(self, exchange) -> None:
        if exchange.seen.target == b"/health":
            self.asked += 1
            if self.status == "silence":
                await exchange.gone()
            else:
                await exchange.json({}, self.status)
        else:
            await plain(exchange)


async def test_a_probe_takes_one_out_and_lets_it_in_again(build, three):
    """Two failures take it out before a request meets it; it takes no slot and calls no model."""
    scripts = [Ailing(), Ailing()]
    for fake, script in zip(three, scripts, strict=False):
        fake.script = script
    backends = build(three[:2], watching=Watching(probe="/health", interval=0.02))
    backends.begin()
    await rig.until(lambda: all(script.asked > 2 for script in scripts))
    assert column(backends, "state") == ["well", "well"]
    scripts[0].status = "503 Service Unavailable"
    await rig.until(lambda: column(backends, "state") == ["open", "well"])
    for _ in range(6):
        assert (await whole(backends))[0] == 200
    assert (three[0].calls, three[1].calls) == (0, 6)
    asked = scripts[0].asked
    await rig.until(lambda: scripts[0].asked > asked + 5)
    assert column(backends, "state")[0] == "open"
    scripts[0].status = "200 OK"
    await rig.until(lambda: column(backends, "state") == ["well", "well"])
    for _ in range(6):
        await whole(backends)
    assert three[0].calls == 3
    assert column(backends, "slots_used") == [0, 0]


async def test_one_failure_of_a_probe_is_none(build, three):
    """Every other answer is an error: nothing follows."""
    script = Ailing()

    async def moody(exchange) -> None:
        script.status = "500 Internal Server Error" if script.asked % 2 else "200 OK"
        await script(exchange)

    three[0].script = moody
    backends = build(three[:2], watching=Watching(probe="/health", interval=0.01))
    backends.begin()
    await rig.until(lambda: script.asked > 12)
    assert column(backends, "ejections") == [0, 0]


async def test_a_probe_finds_one_that_is_gone_and_one_that_is_back(build, three, caplog):
    scripts = [Ailing(), Ailing()]
    for fake, script in zip(three, scripts, strict=False):
        fake.script = script
    backends = build(three[:2], watching=Watching(probe="/health", interval=0.02))
    backends.begin()
    await three[0].stop()
    await rig.until(lambda: column(backends, "state") == ["open", "well"])
    assert len([line for line in caplog.messages if "cannot be reached" in line]) == 1
    await three[0].start()
    await rig.until(lambda: column(backends, "state") == ["well", "well"])


async def test_one_alone_is_asked_whatever_its_probe_says(build, three):
    three[0].script = script = Ailing()
    script.status = "500 Internal Server Error"
    backends = build(three[:1], watching=Watching(probe="/health", interval=0.02))
    backends.begin()
    await rig.until(lambda: script.asked > 5)
    assert (await whole(backends))[0] == 200


# --- draining ----------------------------------------------------------------------------------------------------


async def test_draining_one_ends_nothing_that_runs(start, session, three):
    """By the admin call: what runs there is answered, nothing new comes, until it is put back."""
    go = asyncio.Event()

    async def held(exchange) -> None:
        if b"completions" in exchange.seen.target:
            await asyncio.wait_for(go.wait(), 20)
        await plain(exchange)

    for fake in three[:2]:
        fake.script = held
    urls = [fake.url for fake in three[:2]]
    proxy = await start(upstream=urls, prefix__routing="round-robin")
    client, admin = rig.Client(proxy.base, session), Caller(session, proxy.admin)
    running = [asyncio.create_task(client.chat(seed=number)) for number in range(2)]
    await rig.until(lambda: [fake.calls for fake in three[:2]] == [1, 1])
    status, told = await admin.post("/admin/upstreams/drain", {"url": urls[0] + "/v1/", "draining": True})
    assert (status, [row["draining"] for row in told["upstreams"]]) == (200, [True, False])
    go.set()
    assert [(await task).status for task in running] == [200, 200]
    for number in range(2, 6):
        assert (await client.chat(seed=number)).status == 200
    assert [fake.calls for fake in three[:2]] == [1, 5]
    status, told = await admin.post("/admin/upstreams/drain", {"url": urls[1], "draining": True})
    assert (status, told["error"]["code"]) == (409, "conflict")
    assert (await admin.post("/admin/upstreams/drain", {"url": "http://nobody:1", "draining": True}))[0] == 404
    assert (await admin.post("/admin/upstreams/drain", {"url": urls[0], "draining": False}))[0] == 200
    for number in range(6, 10):
        assert (await client.chat(seed=number)).status == 200
    assert [fake.calls for fake in three[:2]] == [3, 7]
    await admin.post("/admin/upstreams/drain", {"url": urls[0], "draining": True})
    status, _ = await admin.post("/admin/upstreams/drain", {"url": urls[1], "draining": True, "force": True})
    assert status == 200
    answer = await wire.ask(proxy.port, wire.request({**BODY, "seed": 99}))
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (503, "circuit_open")
    assert (await admin.post("/admin/upstreams/drain", {"draining": False}))[0] == 200
    assert (await client.chat(seed=100)).status == 200


@pytest.mark.parametrize(
    "order",
    [{}, [], 1, {"draining": "yes", "url": "http://a:1"}, {"draining": True}, {"draining": True, "url": 5},
     {"draining": False, "url": None}, {"draining": False, "force": 1}, {"draining": False, "what": 1}],
    ids=repr,
)  # fmt: skip
async def test_what_is_no_order_to_drain_is_refused(proxy, session, order):
    status, told = await Caller(session, proxy.admin).post("/admin/upstreams/drain", order)
    assert (status, told["error"]["code"]) == (400, "invalid_request")
    assert column(proxy.house.backends, "draining") == [False]
