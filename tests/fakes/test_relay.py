"""The relay does what each mode says, before a server that echoes and one that answers like Redis."""

import asyncio
import gc
from contextlib import asynccontextmanager

import pytest

from tests.fakes import relay as relays
from tests.fakes import resp
from tests.fakes.backend import reset
from tests.fakes.ports import free_port
from tests.fakes.relay import DOWN, LOADING, OPENING, UP, Relay
from tests.redis_fixtures import relay_to  # noqa: F401
from tests.rig import until


class Server:
    """Echoes; or, before Redis' words, answers ``+name n`` to the n-th command. Sees what came and how it ended."""

    def __init__(self) -> None:
        self.came, self.open, self.resets, self.pushes = bytearray(), 0, 0, False
        self.held: asyncio.Event | None = None

    async def echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(2**16):
            self.came += data
            writer.write(data)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting, count = bytearray(), 0
        while data := await reader.read(2**16):
            self.came += data
            waiting += data
            while waiting and (end := resp.end(waiting)) is not None:
                words, count = resp.parse(waiting[:end]), count + 1
                del waiting[:end]
                if self.held is not None:
                    await self.held.wait()
                writer.write((b">2\r\n+pushed\r\n:1\r\n" if self.pushes else b"") + b"+%b %d\r\n" % (words[0], count))


@asynccontextmanager
async def serving(handle, server: Server, path=None):
    async def taken(reader, writer):
        server.open += 1
        try:
            await handle(reader, writer)
        except ConnectionError:
            server.resets += 1
        finally:
            server.open -= 1
            writer.close()

    running = await (asyncio.start_unix_server(taken, path) if path else asyncio.start_server(taken, "127.0.0.1", 0))
    try:
        yield path or running.sockets[0].getsockname()[:2]
    finally:
        running.close()
        await until(lambda: server.open == 0)


class Caller:
    """A client of a relay."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def take(self, count: int) -> bytes:
        return await asyncio.wait_for(self.reader.readexactly(count), 10)

    async def echoed(self, data: bytes) -> None:
        self.send(data)
        assert await self.take(len(data)) == data

    async def ask(self, *words: str) -> bytes:
        self.send(resp.pack(*words))
        return await asyncio.wait_for(self.reader.readline(), 10)

    async def ended(self) -> bytes | str:
        """What still came before the end, or that it was a reset."""
        try:
            return await asyncio.wait_for(self.reader.read(), 10)
        except ConnectionResetError:
            return "reset"


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def echo(server, relay_to):  # noqa: F811
    async with serving(server.echo, server) as address:
        relay = relay_to(address)
        yield relay
        await relay.stop()


@pytest.fixture
async def spoken(server, relay_to):  # noqa: F811
    async with serving(server.answer, server) as address:
        relay = relay_to(address)
        yield relay
        await relay.stop()


@pytest.fixture
async def call():
    callers = []

    async def begin(relay: Relay) -> Caller:
        callers.append(Caller(*await asyncio.open_connection("127.0.0.1", relay.port)))
        return callers[-1]

    yield begin
    for caller in callers:
        caller.writer.transport.abort()
        await asyncio.gather(caller.writer.wait_closed(), return_exceptions=True)


def now() -> float:
    return asyncio.get_running_loop().time()


async def nothing(caller: Caller, seconds: float = 0.1) -> None:
    """Nothing comes, not even an end."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(caller.reader.read(1), seconds)


async def test_it_passes_and_counts(echo, call, server):
    data = bytes(range(256)) * 4096
    one, other = await call(echo), await call(echo)
    await one.echoed(data)
    await other.echoed(b"x")
    assert echo.passed == {UP: len(data) + 1, DOWN: len(data) + 1}
    assert (echo.opened, echo.open, server.open) == (2, 2, 2)
    one.writer.close()
    await until(lambda: echo.open == server.open == 1)
    assert echo.opened == 2


async def test_an_end_is_passed_after_the_last_byte(echo, call):
    caller = await call(echo)
    echo.slice(1000)
    caller.send(b"x" * 50_000)
    caller.writer.write_eof()
    assert await caller.ended() == b"x" * 50_000
    await until(lambda: echo.open == 0)


async def test_a_delay_holds_each_way_for_its_time(echo, call, server):
    caller = await call(echo)
    echo.delay(0.1)
    began = now()
    await caller.echoed(b"x")
    assert now() - began >= 0.2
    echo.clear()
    echo.delay(1000, ways=[DOWN])
    caller.send(b"y")
    await until(lambda: server.came == b"xy")
    await nothing(caller)


async def test_jitter_is_drawn_by_the_seed(echo):
    drawn = [[Relay(echo.target, seed=seed).drawn.random() for _ in range(2)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


async def test_jitter_changes_the_delay(echo, call):
    caller = await call(echo)
    echo.delay(0.05, 0.05, ways=[UP])
    times = []
    for _ in range(8):
        began = now()
        await caller.echoed(b"x")
        times.append(now() - began)
    assert max(times) - min(times) > 0.01


async def test_a_switch_wakes_who_waits_and_loses_nothing(echo, call, server):
    caller = await call(echo)
    echo.delay(1000)
    caller.send(b"abc")
    await nothing(caller)
    echo.delay(500)
    await nothing(caller)
    assert server.came == b""
    echo.clear()
    assert await caller.take(3) == b"abc"


async def test_slices_come_one_by_one(echo, call):
    caller = await call(echo)
    echo.slice(2, 0.02, ways=[DOWN])
    caller.send(b"abcdef")
    assert [await asyncio.wait_for(caller.reader.read(100), 10) for _ in range(3)] == [b"ab", b"cd", b"ef"]


async def test_a_trickle_is_one_byte_a_second(echo, call):
    caller = await call(echo)
    echo.trickle(ways=[DOWN])
    caller.send(b"abc")
    assert await caller.take(1) == b"a"
    await nothing(caller, 0.5)
    began = now()
    echo.clear()
    assert await caller.take(2) == b"bc"
    assert now() - began < 0.5


async def test_frozen_it_takes_everything_and_passes_nothing(echo, call, server):
    before = await call(echo)
    await before.echoed(b"x")
    echo.freeze()
    before.send(b"one")
    after = await call(echo)
    after.send(b"two")
    gone = await call(echo)
    gone.writer.close()
    await nothing(before)
    await nothing(after)
    assert bytes(server.came) == b"x"
    assert echo.open == 3
    echo.clear()
    assert await before.take(3) == b"one"
    assert await after.take(3) == b"two"
    await until(lambda: echo.open == 2)


async def test_one_way_can_be_frozen(echo, call, server):
    caller = await call(echo)
    echo.freeze(ways=[DOWN])
    caller.send(b"x")
    await until(lambda: server.came == b"x")
    await nothing(caller)


async def test_a_closed_listener_refuses_and_open_connections_stay(echo, call):
    caller = await call(echo)
    await caller.echoed(b"x")
    echo.refuse()
    with pytest.raises(ConnectionRefusedError):
        await call(echo)
    await caller.echoed(b"y")
    echo.accept()
    await (await call(echo)).echoed(b"z")


async def test_open_connections_are_reset(echo, call, server):
    caller = await call(echo)
    await caller.echoed(b"x")
    echo.reset()
    assert await caller.ended() == "reset"
    await until(lambda: server.resets == 1)
    await until(lambda: echo.open == 0)
    await (await call(echo)).echoed(b"x")


@pytest.mark.parametrize("way", [UP, DOWN])
async def test_a_cut_lets_so_many_bytes_through(echo, call, server, way):
    caller = await call(echo)
    await caller.echoed(b"before")
    echo.cut(4, ways=[way])
    caller.send(b"abcdefgh")
    left = await caller.ended()
    assert b"abcd".startswith(left) if way == UP else left == b"abcd"
    await until(lambda: server.open == 0)
    assert bytes(server.came) == (b"beforeabcd" if way == UP else b"beforeabcdefgh")


async def test_a_cut_can_be_a_reset_and_can_be_at_once(echo, call):
    caller = await call(echo)
    await caller.echoed(b"x")
    echo.cut(0, resets=True)
    assert await caller.ended() == "reset"


async def test_garbled_bytes_are_others_and_as_many(echo, call, server):
    caller = await call(echo)
    echo.garble()
    caller.send(bytes(1000))
    assert 0 not in await caller.take(1000)
    assert bytes(server.came) == bytes(1000)
    echo.garble(0.1)
    caller.send(bytes(1000))
    assert 50 < sum(byte != 0 for byte in await caller.take(1000)) < 150


async def test_a_target_that_is_not_there_resets(relay_to, call):  # noqa: F811
    caller = await call(relay_to(("127.0.0.1", free_port())))
    assert await caller.ended() == "reset"


async def test_a_reset_server_resets_the_client(relay_to, call, server):  # noqa: F811
    async def handle(reader, writer):
        await reader.read(1)
        reset(writer)

    async with serving(handle, server) as address:
        caller = await call(relay_to(address))
        caller.send(b"x")
        assert await caller.ended() == "reset"


async def test_a_unix_socket_is_a_target(relay_to, call, tmp_path, server):  # noqa: F811
    async with serving(server.echo, server, tmp_path / "s") as path:
        caller = await call(relay_to(path))
        await caller.echoed(b"x")
        caller.writer.close()


async def test_every_request_is_answered_here(spoken, call, server):
    caller = await call(spoken)
    assert await caller.ask("GET", "a") == b"+GET 1\r\n"
    spoken.answer(LOADING, but=OPENING)
    assert await caller.ask("get", "a") == LOADING
    assert await caller.ask("HELLO", "3") == b"+HELLO 2\r\n"
    assert resp.pack("get", "a") not in bytes(server.came)
    spoken.clear()
    assert await caller.ask("GET", "a") == b"+GET 3\r\n"
    assert spoken.commands == {"GET": 3, "HELLO": 1}


async def test_only_the_named_commands_and_only_so_often(spoken, call):
    caller = await call(spoken)
    spoken.answer(relays.OOM, "set", "EVALSHA", times=2)
    assert [await caller.ask(name, "x") for name in ("SET", "GET", "evalsha", "SET")] == [
        relays.OOM, b"+GET 1\r\n", relays.OOM, b"+SET 2\r\n",
    ]  # fmt: skip


@pytest.mark.parametrize("pushes", [False, True])
async def test_answers_come_in_the_order_of_the_requests(spoken, call, server, pushes):
    """A pipeline whose requests are answered by both: each reply stands where its request stood, pushes apart."""
    server.held, server.pushes = asyncio.Event(), pushes
    caller = await call(spoken)
    spoken.answer(b"-NO\r\n", "SET")
    names = ["SET", "GET", "SET", "SET", "GET", "SET"]
    caller.send(b"".join(resp.pack(name, "k") for name in names))
    assert await caller.take(5) == b"-NO\r\n"
    await nothing(caller)
    server.held.set()
    push = b">2\r\n+pushed\r\n:1\r\n" if pushes else b""
    rest = push + b"+GET 1\r\n-NO\r\n-NO\r\n" + push + b"+GET 2\r\n-NO\r\n"
    assert await caller.take(len(rest)) == rest


@pytest.mark.parametrize("size", [1, 3, 7])
async def test_requests_in_pieces_are_answered_once(spoken, call, server, size):
    caller = await call(spoken)
    spoken.answer(b"-NO\r\n", "SET")
    data = resp.pack("SET", "k", b"\r\n*1\r\n$4\r\nPING\r\n") + resp.pack("GET", "k")
    for at in range(0, len(data), size):
        caller.send(data[at : at + size])
        await asyncio.sleep(0)
    assert await caller.take(13) == b"-NO\r\n+GET 1\r\n"
    assert bytes(server.came) == resp.pack("GET", "k")


async def test_a_request_whose_beginning_has_gone_is_the_servers(spoken, call, server):
    caller = await call(spoken)
    data = resp.pack("SET", "k", "v")
    caller.send(data[:10])
    await until(lambda: bytes(server.came) == data[:10])
    spoken.answer(b"-NO\r\n")
    caller.send(data[10:])
    assert await caller.reader.readline() == b"+SET 1\r\n"
    assert await caller.ask("SET", "k") == b"-NO\r\n"


async def test_what_is_not_redis_passes_in_spite_of_answers(echo, call):
    caller = await call(echo)
    echo.answer(LOADING)
    await caller.echoed(b"\x16\x03\x01 no request at all, and longer than a line may be")


async def test_round_trips_are_turns_of_speaking(spoken, call):
    caller = await call(spoken)
    caller.send(resp.pack("GET", "a") + resp.pack("GET", "b"))
    await caller.take(16)
    assert spoken.round_trips == 1
    spoken.answer(b"+OK\r\n", "SET")
    for name in ("GET", "SET", "SET"):
        await caller.ask(name, "a")
    assert spoken.round_trips == 4


async def test_a_stop_leaves_nothing(spoken, call, server):
    for name in ("freeze", "trickle", "clear"):
        getattr(spoken, name)()
        caller = await call(spoken)
        caller.send(resp.pack("GET", "a"))
        await until(lambda: spoken.open > 0)
        await spoken.stop()
        assert await caller.ended() in (b"", b"+", b"+GET 1\r\n", "reset")
        assert spoken.open == 0
        spoken.accept()
    await spoken.stop()
    await until(lambda: server.open == 0)
    gc.collect()
    names = [task.get_coro().__qualname__ for task in asyncio.all_tasks()]
    assert not [name for name in names if "Connection" in name or "Way" in name]


async def test_many_connections_under_changing_modes(spoken, call):
    """Nothing is lost, doubled or given to another, whatever is switched meanwhile."""
    answered = 0

    async def client() -> None:
        nonlocal answered
        for _ in range(10):
            caller = await call(spoken)
            for word in ("GET", "SET", "DEL"):
                assert (await caller.ask(word, "k"))[:4] in (b"+" + word.encode(), b"-NO\r")
                answered += 1
            caller.writer.close()

    async def switch() -> None:
        modes = [
            lambda: spoken.slice(1), lambda: spoken.delay(0.003, 0.002), lambda: spoken.answer(b"-NO\r\n", "SET"),
            spoken.freeze, spoken.clear,
        ]  # fmt: skip
        while True:
            for mode in modes:
                mode()
                await asyncio.sleep(0.005)

    switching = asyncio.create_task(switch())
    async with asyncio.timeout(30):
        await asyncio.gather(*(client() for _ in range(10)))
    switching.cancel()
    assert answered == 300
    assert spoken.opened == 100


VALUES = [
    (b"+OK\r\n", b"OK"), (b":-7\r\n", -7), (b"$3\r\na\r\n\r\n", b"a\r\n"), (b"$-1\r\n", None), (b"*-1\r\n", None),
    (b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n", [b"a", [1]]), (b"%1\r\n+k\r\n#t\r\n", {b"k": True}), (b"_\r\n", None),
    (b",1.5\r\n", 1.5), (b"(12345678901234567890\r\n", 12345678901234567890), (b"=5\r\ntxt:x\r\n", b"txt:x"),
    (b"~1\r\n:1\r\n", [1]), (b">2\r\n+m\r\n:1\r\n", [b"m", 1]), (b"|1\r\n+a\r\n:1\r\n*1\r\n:2\r\n", [2]), (b"*0\r\n", []),
]  # fmt: skip


@pytest.mark.parametrize(("data", "value"), VALUES, ids=lambda v: v.decode("latin-1") if isinstance(v, bytes) else "")
def test_resp_messages_end_where_they_end(data, value):
    assert [resp.end(data[:i]) for i in range(len(data))] == [None] * len(data)
    assert resp.end(data + b"+more\r\n") == resp.end(data) == len(data)
    assert resp.end(b"+x\r\n" + data, 4) == 4 + len(data)
    assert resp.parse(data) == value


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01", b"*x\r\n", b"$9999999999999999999999999999999999999999"]
)
def test_resp_knows_what_is_none(data):
    with pytest.raises(resp.NotResp):
        resp.end(data)


def test_resp_errors_have_a_kind():
    error = resp.parse(b"-MOVED 1 127.0.0.1:1\r\n")
    assert isinstance(error, resp.Refused)
    assert error.kind == "MOVED"
    assert isinstance(resp.parse(b"!7\r\nERR bad\r\n"), resp.Refused)
