"""Which of several backends takes a request: one family at one place, load bounded, counts exact however it ends."""

import asyncio

import pytest

from cacheproxy.core import trail
from cacheproxy.core.affinity import Policy, rendezvous
from cacheproxy.core.model import Endpoint
from cacheproxy.errors import ConfigurationError, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from cacheproxy.http.backend import Backends, Patience
from cacheproxy.http.balance import Balance
from cacheproxy.http.loads import Reading
from cacheproxy.http.upstream import Upstream
from cacheproxy.ports import Outbound
from tests import rig
from tests.fakes.backend import Backend, bare, completion, gives, plain, sends

RULES = "You are the assistant of a shop. " + "Be kind to everybody who asks. " * 200


def asking(user: str, system: str | None = RULES, *said: str) -> dict:
    """A chat: a system text, what was said before, and what a user says now."""
    head = [{"role": "system", "content": system}] if system else []
    before = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(said)]
    return {"model": "m", "messages": [*head, *before, {"role": "user", "content": user}]}


def outbound(user: str, system: str | None = RULES, *said: str) -> Outbound:
    route = trail.route(Endpoint.CHAT, asking(user, system, *said))
    return Outbound("POST", rig.CHAT.encode(), (), b"{}", route)


PLAIN = Outbound("GET", b"/v1/files", (), None)


@pytest.fixture
async def pair(backend):
    """Two healthy backends."""
    second = await Backend().start()
    yield [backend, second]
    await second.stop()
    assert second.errors == []


@pytest.fixture
async def build(pair):
    """Backends over the pair: ``backends = build(Policy.AFFINITY, weights=[1, 2])``; no metrics are read."""
    built: list[Backends] = []

    def make(policy: Policy = Policy.AFFINITY, *, weights=(1.0, 1.0), fakes=pair, reading=None, idle=10.0) -> Backends:
        upstreams = [Upstream(fake.url, weight) for fake, weight in zip(fakes, weights, strict=True)]
        balance = Balance(upstreams, policy=policy)
        built.append(Backends(upstreams, Patience(2.0, 10.0, idle), balance, interval=0))
        if reading is not None:
            balance.reading = reading
        return built[-1]

    yield make
    for backends in built:
        assert [row["inflight"] for row in backends.rows()] == [0] * len(backends.rows())
        await backends.close()


def rested(backends: Backends) -> None:
    """The moment is over in which a backend is passed over that could not be reached."""
    for station in backends.balance.stations:
        station.health._unreached_until = 0.0


async def whole(backends: Backends, request: Outbound) -> None:
    reply = await backends.send(request)
    while await reply.read():
        pass
    reply.close()


def at_home(pair: list[Backend], request: Outbound) -> int:
    """Which of the pair is the request's home."""
    urls = [Upstream(fake.url).url for fake in pair]
    return rendezvous(request.route.home, urls, [1.0] * len(pair))[0]


def inflight(backends: Backends) -> list[int]:
    return [row["inflight"] for row in backends.rows()]


class Holding:
    """A script: healthy, but chats are answered only when told."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def __call__(self, exchange) -> None:
        if b"completions" in exchange.seen.target:
            await asyncio.wait_for(self.go.wait(), 20)
        await plain(exchange)


# --- through the proxy -------------------------------------------------------------------------------------------


async def test_one_system_prompt_goes_to_one_backend(start, session, pair):
    """Whoever asks, whatever is asked, with the system prompt the same: the same backend, which has it cached."""
    proxy = await start(upstream=[fake.url for fake in pair])
    client = rig.Client(proxy.base, session)
    for number in range(12):
        answer = await client.send(asking(f"question {number}"), key=f"user {number}")
        assert (answer.status, answer.cache) == (200, "MISS")
    home = at_home(pair, outbound("x"))
    assert (pair[home].calls, pair[1 - home].calls) == (12, 0)


async def test_system_prompts_are_spread_by_rendezvous(start, session, pair):
    """Each at its own home, which every proxy finds without asking another."""
    urls = [fake.url for fake in pair]
    proxies = [await start(upstream=order) for order in (urls, urls[::-1])]
    clients = [rig.Client(proxy.base, session) for proxy in proxies]
    homes = []
    for number in range(24):
        system = f"{chr(107 + number % 15) * 3} number {number // 15 * 'x'}. {RULES}"
        homes.append(at_home(pair, outbound("x", system)))
        before = [fake.calls for fake in pair]
        for client in clients:
            assert (await client.send(asking("hello", system))).status == 200
        after = [fake.calls for fake in pair]
        assert after[homes[-1]] - before[homes[-1]] == 2
    assert 0 < sum(homes) < 24


async def test_a_hot_system_prompt_spills_when_its_backend_is_busy(start, session, pair):
    """While answers are running: the first two go home, then the other one shares the load."""
    holding = Holding()
    for fake in pair:
        fake.script = holding
    proxy = await start(upstream=[fake.url for fake in pair])
    client = rig.Client(proxy.base, session)
    home, asked = at_home(pair, outbound("x")), []
    running = []
    for number in range(8):
        running.append(asyncio.create_task(client.send(asking(f"question {number}"))))
        await rig.until(lambda count=number: pair[0].calls + pair[1].calls == count + 1)
        asked.append(pair[home].calls)
    assert asked[:3] == [1, 2, 2]
    assert asked[-1] == 4
    assert sum(row["inflight"] for row in proxy.house.backends.rows()) == 8
    holding.go.set()
    assert [(await task).status for task in running] == [200] * 8
    assert inflight(proxy.house.backends) == [0, 0]


async def test_a_caller_that_leaves_is_not_counted_any_more(start, session, pair):
    """Whether its answer had begun or not."""
    holding = Holding()
    begun = asyncio.Event()

    async def forever(exchange) -> None:
        if b"completions" in exchange.seen.target:
            await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
            begun.set()
            await exchange.gone()

    proxy = await start(upstream=[fake.url for fake in pair], exact__mode="off")
    client = rig.Client(proxy.base, session)
    for script in (holding, forever):
        for fake in pair:
            fake.script = script
        before = sum(fake.calls for fake in pair)
        task = asyncio.create_task(client.send({**asking("hello"), "stream": True}))
        await rig.until(lambda count=before: sum(fake.calls for fake in pair) > count)
        if script is forever:
            await asyncio.wait_for(begun.wait(), 10)
        assert sum(inflight(proxy.house.backends)) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await rig.until(lambda: inflight(proxy.house.backends) == [0, 0])


# --- affinity ----------------------------------------------------------------------------------------------------


async def test_a_dead_backend_s_families_move_and_come_back(build, pair):
    """The other's do not move; a conversation that began elsewhere meanwhile stays there."""
    backends = build()
    systems = [f"{sign * 4}. {RULES}" for sign in "ghijklmnopqrstuv"]
    homes = [at_home(pair, outbound("x", system)) for system in systems]
    assert 0 < sum(homes) < len(homes)
    for system in systems:
        await whole(backends, outbound("first", system))
    assert [fake.calls for fake in pair] == [homes.count(0), homes.count(1)]
    dead, other = pair
    await dead.stop()
    for system in systems:
        await whole(backends, outbound("second", system))
    assert other.calls == homes.count(1) + len(systems)
    assert [row["resting"] for row in backends.rows()] == [True, False]
    moved = systems[homes.index(0)]
    talk = ["hello " * 300, "hi " * 300]
    await whole(backends, outbound("third", moved, *talk))
    await dead.start()
    rested(backends)
    before = [fake.calls for fake in pair]
    await whole(backends, outbound("fourth", moved, *talk, "third", "and " * 300))
    assert [fake.calls for fake in pair] == [before[0], before[1] + 1]
    for system in systems:
        await whole(backends, outbound("fifth", system))
    assert [fake.calls for fake in pair] == [before[0] + homes.count(0), before[1] + 1 + homes.count(1)]


async def test_a_conversation_comes_back_to_where_it_was_read(build, pair):
    """Also where that is not its home, as after a spill."""
    backends = build()
    home = at_home(pair, outbound("x"))
    held = [await backends.send(outbound(f"held {i}")) for i in range(2)]
    talk = ["hello " * 300]
    await whole(backends, outbound("spilled", RULES, *talk))
    for reply in held:
        reply.close()
    assert pair[1 - home].calls == 1
    for turn in range(3):
        talk += ["reply " * 300, f"turn {turn} " * 300]
        await whole(backends, outbound("on", RULES, *talk))
    assert pair[1 - home].calls == 4
    await whole(backends, outbound("new"))
    assert pair[home].calls == 3


async def test_what_a_backend_knew_is_not_counted_on_after_it_was_away(build, pair):
    """Two conversations were read away from their home, then one of them finds that backend gone: the other goes home
    too, although the backend is back."""
    backends = build()
    home = at_home(pair, outbound("x"))
    away = pair[1 - home]
    one, two = ["hello " * 300], ["good day " * 300]
    held = [await backends.send(outbound(f"held {i}")) for i in range(2)]
    for talk in (one, two):
        await whole(backends, outbound("spilled", RULES, *talk))
    for reply in held:
        reply.close()
    known = away.calls
    for talk in (one, two):
        await whole(backends, outbound("on", RULES, *talk, "reply " * 300))
    assert away.calls == known + 2
    await away.stop()
    await whole(backends, outbound("on", RULES, *one, "reply " * 300))
    await away.start()
    rested(backends)
    before = pair[home].calls
    await whole(backends, outbound("on", RULES, *two, "reply " * 300))
    assert pair[home].calls == before + 1


@pytest.mark.parametrize("policy", list(Policy))
async def test_a_backend_that_could_not_be_reached_rests(build, pair, monkeypatch, policy):
    """It is not tried again while there is another; it is when there is none."""
    connect, tried = Upstream.connect, []

    async def noted(upstream: Upstream):
        tried.append(upstream.port)
        return await connect(upstream)

    monkeypatch.setattr(Upstream, "connect", noted)
    dead = await gone()
    backends = build(policy, fakes=[dead, pair[0]])
    for number in range(10):
        await whole(backends, outbound(f"user {number}", f"{'ghijklmnop'[number] * 5} {RULES}"))
    assert tried.count(dead.port) == 1
    await pair[0].stop()
    with pytest.raises(UpstreamUnreachable):
        await whole(backends, outbound("x"))
    assert [row["resting"] for row in backends.rows()] == [True, True]
    tried.clear()
    await pair[0].start()
    await whole(backends, outbound("x"))
    assert pair[0].port in tried


async def test_weights_share_out_families_and_load(build, pair):
    """A backend of twice the weight holds two of three when all are running."""
    backends = build(weights=[1.0, 2.0])
    replies = [await backends.send(outbound(f"user {i}")) for i in range(12)]
    assert inflight(backends) == [4, 8]
    for reply in replies:
        reply.close()


# --- the other policies, and what has no prefix ------------------------------------------------------------------


@pytest.mark.parametrize("request_", [PLAIN, outbound("x")], ids=["without a prompt", "with one"])
async def test_round_robin_takes_turns_by_weight(build, pair, request_):
    backends = build(Policy.ROUND_ROBIN, weights=[2.0, 1.0])
    went = []
    for _ in range(9):
        await whole(backends, request_)
        went.append(len(pair[0].seen))
    assert went == [1, 1, 2, 3, 3, 4, 5, 5, 6]


@pytest.mark.parametrize(
    ("policy", "request_"), [(Policy.LEAST_INFLIGHT, PLAIN), (Policy.LEAST_INFLIGHT, outbound("x")), (Policy.AFFINITY, PLAIN)]
)  # fmt: skip
async def test_least_inflight_goes_where_least_is_running(build, pair, policy, request_):
    """What has no prompt goes so under `affinity` too; where as much is running, they take turns."""
    backends = build(policy)
    held = await backends.send(request_)
    busy = 0 if inflight(backends) == [1, 0] else 1
    for _ in range(5):
        await whole(backends, request_)
    assert (len(pair[busy].seen), len(pair[1 - busy].seen)) == (1, 5)
    held.close()
    for _ in range(10):
        await whole(backends, request_)
    assert abs(len(pair[busy].seen) - 6) <= 1


async def test_least_inflight_is_by_weight(build):
    backends = build(Policy.LEAST_INFLIGHT, weights=[1.0, 3.0])
    replies = [await backends.send(PLAIN) for _ in range(8)]
    assert inflight(backends) == [2, 6]
    for reply in replies:
        reply.close()


# --- what a backend says of itself -------------------------------------------------------------------------------

BUSY = Reading(running=0, waiting=0, kv_usage=0.97, full=True)
FREE = Reading(running=1, waiting=0, kv_usage=0.5, full=False)


@pytest.mark.parametrize("policy", [Policy.AFFINITY, Policy.LEAST_INFLIGHT])
async def test_a_full_backend_is_passed_over_while_another_is_not(build, pair, policy):
    told: dict[str, Reading] = {}
    backends = build(policy, reading=lambda upstream: told.get(upstream.url))
    home = at_home(pair, outbound("x"))
    told[Upstream(pair[home].url).url] = BUSY
    for number in range(4):
        await whole(backends, outbound(f"user {number}"))
    assert [pair[home].calls, pair[1 - home].calls] == [0, 4]
    told[Upstream(pair[1 - home].url).url] = BUSY
    for number in range(4):
        await whole(backends, outbound(f"user {number}", "zzz " + RULES))
        await whole(backends, PLAIN)
    assert pair[0].seen
    assert pair[1].seen


async def test_round_robin_does_not_listen(build, pair):
    backends = build(Policy.ROUND_ROBIN, reading=lambda upstream: BUSY if str(pair[0].port) in upstream.url else None)
    for _ in range(4):
        await whole(backends, PLAIN)
    assert [len(fake.seen) for fake in pair] == [2, 2]


async def test_work_that_others_brought_counts_as_load(build, pair):
    """Another proxy's requests run there: what is new goes to the other, what waits weighs twice."""
    told: dict[str, Reading] = {}
    backends = build(Policy.LEAST_INFLIGHT, reading=lambda upstream: told.get(upstream.url))
    urls = [Upstream(fake.url).url for fake in pair]
    told.update({urls[0]: FREE})
    held = [await backends.send(PLAIN)]
    assert inflight(backends) == [0, 1]
    told.update({urls[0]: Reading(1, 1, None, full=False), urls[1]: Reading(2, 0, None, full=False)})
    held.append(await backends.send(PLAIN))
    assert inflight(backends) == [0, 2]
    for reply in held:
        reply.close()


WELL = {"state": "well", "max_inflight": 16, "slots_used": 0, "draining": False, "ejections": 0}


async def test_rows_tell_the_state_and_no_secret(build, pair):
    backends = build(weights=[1.0, 2.0], reading=lambda upstream: FREE if str(pair[1].port) in upstream.url else None)
    await pair[0].stop()
    await whole(backends, PLAIN)
    assert backends.rows() == [
        {"url": f"http://127.0.0.1:{pair[0].port}", "weight": 1.0, "inflight": 0, "resting": True, "running": None,
         "waiting": None, "kv_usage": None, **WELL},
        {"url": f"http://127.0.0.1:{pair[1].port}", "weight": 2.0, "inflight": 0, "resting": False, "running": 1,
         "waiting": 0, "kv_usage": 0.5, **WELL},
    ]  # fmt: skip
    with pytest.raises(ConfigurationError):
        Upstream("http://user:secret@127.0.0.1:8000")


# --- counts ------------------------------------------------------------------------------------------------------


async def test_an_answer_counts_until_it_is_closed(build, pair):
    backends = build()
    reply = await backends.send(outbound("x"))
    while await reply.read():
        assert sum(inflight(backends)) == 1
    assert sum(inflight(backends)) == 1
    reply.close()
    reply.close()
    assert inflight(backends) == [0, 0]


async def test_a_lease_ends_once(pair):
    balance = Balance([Upstream(fake.url) for fake in pair])
    first, second = balance.seat(None), balance.seat(None)
    assert repr(first) == f"<Lease open {first.upstream!r}>"
    for lease in (first, first, second, second):
        lease.end()
    assert repr(first) == f"<Lease ended {first.upstream!r}>"
    assert repr(balance) == "<Balance affinity [0, 0]>"


async def test_whatever_fails_counts_no_more(build, pair):
    """No connection to any; closed without an answer; an answer that is none; one that breaks off; one that stalls."""
    with pytest.raises(UpstreamUnreachable):
        await whole(build(fakes=[await gone(), await gone()]), outbound("x"))
    for script in (sends(b"", close=True), sends(b"NOT HTTP\r\n\r\n", close=True)):
        for fake in pair:
            fake.script = script
        with pytest.raises(UpstreamUnreachable):
            await whole(build(), outbound("x"))
    backends = build(idle=0.1)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
    for script, error in ((sends(head, close=True), UpstreamCut), (sends(head), UpstreamTimeout)):
        for fake in pair:
            fake.script = script
        reply = await backends.send(outbound("x"))
        with pytest.raises(error):
            await reply.read()
        reply.close()


async def gone() -> Backend:
    fake = await Backend().start()
    await fake.stop()
    return fake


async def test_a_request_that_moves_on_counts_where_it_goes(build, pair):
    """Not with the backend that could not be reached."""
    dead = await gone()
    for fakes in ([dead, pair[0]], [pair[0], dead]):
        backends = build(fakes=fakes)
        reply = await backends.send(outbound("x"))
        assert inflight(backends) == [int(fake is pair[0]) for fake in fakes]
        reply.close()


async def test_a_caller_may_vanish_at_every_await(build, pair):
    """Cancelled after so many turns of the loop, from the first to the end of the answer: nothing stays counted, and
    the backends go on to answer."""
    backends = build()
    ends = {"cancelled": 0, "answered": 0}
    for turns in range(400):
        task = asyncio.create_task(whole(backends, outbound(f"user {turns}")))
        for _ in range(turns % 40):
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
            ends["answered"] += 1
        except asyncio.CancelledError:
            ends["cancelled"] += 1
        assert inflight(backends) == [0, 0]
    assert min(ends.values()) > 0
    await whole(backends, outbound("at last"))


@pytest.mark.parametrize("where", ["connecting", "the head", "the body"])
async def test_a_caller_that_vanishes_while_it_waits(build, pair, monkeypatch, where):
    waiting = asyncio.Event()

    async def never(*_: object) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async def half(exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
        waiting.set()
        await exchange.gone()

    async def silent(exchange) -> None:
        waiting.set()
        await exchange.gone()

    if where == "connecting":
        monkeypatch.setattr(Upstream, "connect", never)
    for fake in pair:
        fake.script = {"the head": silent}.get(where, half)

    backends = build()

    async def ask() -> None:
        reply = await backends.send(outbound("x"))
        try:
            await reply.read()
        finally:
            reply.close()

    task = asyncio.create_task(ask())
    await asyncio.wait_for(waiting.wait(), 10)
    assert sum(inflight(backends)) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert inflight(backends) == [0, 0]


async def test_a_body_that_was_taken_on_a_new_connection_counts_once(build, pair):
    """A kept connection that turns out to be closed is replaced; the request counts once all the while."""
    backends = build()
    for fake in pair:
        fake.script = gives(completion())
    await whole(backends, outbound("x"))

    async def closes(exchange) -> None:
        exchange.close = True
        for fake in pair:
            fake.script = gives(completion())

    for fake in pair:
        fake.script = closes
    reply = await backends.send(outbound("x"))
    assert sorted(inflight(backends)) == [0, 1]
    reply.close()


async def test_one_backend_alone_needs_no_choice(backend):
    upstreams = [Upstream(backend.url)]
    backends = Backends(upstreams, Patience(2.0, 10.0, 10.0))
    await whole(backends, outbound("x"))
    assert backend.calls == 1
    assert repr(backends.balance) == "<Balance affinity [0]>"
    await backends.close()


async def test_a_stalled_backend_is_not_left_while_it_answers_slowly(build):
    """Not to answer is no reason to move: the request was taken."""

    async def taken(reader, writer) -> None:
        await reader.read()

    async with bare(taken) as one, bare(taken) as two:
        upstreams = [Upstream(one), Upstream(two)]
        backends = Backends(upstreams, Patience(2.0, 0.1, 10.0), Balance(upstreams), interval=0)
        with pytest.raises(UpstreamTimeout):
            await backends.send(outbound("x"))
        assert [row["resting"] for row in backends.rows()] == [False, False]
        assert inflight(backends) == [0, 0]
        await backends.close()
