"""The real Redis: it starts, breaks and ends as it is told, alone and in company."""

import asyncio
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fakes import resp
from tests.parts import place, redis_fleet
from tests.parts import redis as part
from tests.parts.redis_talk import Line
from tests.redis_fixtures import redis, redis_server, redis_start, relay, relay_to  # noqa: F401
from tests.rig import ROOT

pytestmark = [
    pytest.mark.redis,
    pytest.mark.skipif(not part.here(), reason="the packaged Redis exists for Linux on x86-64 only"),
]


def vector(*numbers: float) -> bytes:
    return struct.pack(f"{len(numbers)}f", *numbers)


def make_index(server: part.Redis, name: str = "i", prefix: str = "d:") -> None:
    server.cli(
        "FT.CREATE", name, "ON", "HASH", "PREFIX", 1, prefix, "SCHEMA", "p", "TAG", "t", "TEXT", "v", "VECTOR", "HNSW", 6,
        "TYPE", "FLOAT32", "DIM", 2, "DISTANCE_METRIC", "COSINE",
    )  # fmt: skip


def nearest(server: part.Redis, name: str = "i") -> list[bytes]:
    found = server.cli(
        "FT.SEARCH", name, "@p:{a}=>[KNN 2 @v $q AS far]", "PARAMS", 2, "q", vector(1, 0.1), "SORTBY", "far", "NOCONTENT",
        "DIALECT", 2,
    )  # fmt: skip
    return found[1:]


def fill(server: part.Redis, prefix: str = "d:") -> None:
    for key, place_of, numbers in ("1", "a", (0, 1)), ("2", "a", (1, 0)), ("3", "b", (1, 0.1)):
        server.cli("HSET", prefix + key, "p", place_of, "t", "some words", "v", vector(*numbers))


def test_it_searches(redis):  # noqa: F811
    make_index(redis)
    fill(redis)
    assert nearest(redis) == [b"d:2", b"d:1"]
    assert redis.cli("FT.SEARCH", "i", "@t:word", "NOCONTENT")[0] == 3


def test_the_shared_server_comes_empty(redis):  # noqa: F811
    assert redis.cli("FT._LIST") == []
    assert redis.cli("DBSIZE") == 0


async def test_a_relay_stands_before_it(relay, redis):  # noqa: F811
    reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
    with redis.monitor() as monitor:
        writer.write(resp.pack("SET", "k", "v"))
        assert await reader.readline() == b"+OK\r\n"
        assert monitor.names == ["SET"]
    writer.close()
    await writer.wait_closed()


def test_the_monitor_shows_every_command_and_its_words(redis):  # noqa: F811
    odd = bytes(range(256)) + b'"\\x41'
    with redis.monitor() as monitor:
        redis.cli("SET", "k", odd)
        redis.cli("EVAL", "return redis.call('get', KEYS[1])", 1, "k")
        assert [(heard.name, heard.source == "lua") for heard in monitor.heard()] == [
            ("SET", False), ("EVAL", False), ("GET", True),
        ]  # fmt: skip
        assert monitor.heard()[0].words == (b"SET", b"k", odd)
        for words in ("KEYS", "*"), ("SCAN", 0), ("FLUSHDB",), ("FLUSHALL",):
            redis.cli(*words)
        assert monitor.names[3:] == ["KEYS", "SCAN", "FLUSHDB", "FLUSHALL"]


def test_killed_it_comes_back_empty_or_with_what_it_held(redis_start):  # noqa: F811
    server = redis_start()
    make_index(server)
    fill(server)
    server.restart(keep=True)
    assert nearest(server) == [b"d:2", b"d:1"]
    server.kill()
    assert not server.running
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(server.address)
    server.restart(keep=True)
    assert server.cli("DBSIZE") == 3
    address = server.address
    server.kill()
    server.restart()
    assert (server.cli("DBSIZE"), server.cli("FT._LIST"), server.address) == (0, [], address)


def test_frozen_it_takes_connections_and_says_nothing(redis_start):  # noqa: F811
    server = redis_start(search=False)
    server.freeze()
    socket.create_connection(server.address).close()
    with pytest.raises(TimeoutError):
        server.cli("PING", timeout=0.1)
    server.thaw()
    assert server.cli("PING") == b"PONG"
    server.freeze()
    server.stop()
    assert not server.running
    assert "ready to exit" in server.log


def test_a_unix_socket_alone(redis_start):  # noqa: F811
    server = redis_start(port=None, search=False)
    assert (server.port, server.address) == (None, server.socket)
    assert server.url == f"unix://{server.socket}"
    assert server.cli("CONFIG", "GET", "port") == [b"port", b"0"]


def test_its_configuration(redis_start):  # noqa: F811
    server = redis_start(search=False, config=["maxmemory 1mb"])
    with pytest.raises(resp.Refused) as refused:
        for number in range(100):
            server.cli("SET", number, b"x" * 100_000)
    assert refused.value.kind == "OOM"


def test_its_users(redis_start):  # noqa: F811
    server = redis_start(acl=["user app on >pw ~c:* resetchannels -@all +get"])
    with Line(server.socket, None, 5) as nobody, pytest.raises(resp.Refused, match="NOAUTH"):
        nobody.call("GET", "c:a")
    with Line(server.socket, ("app", "pw"), 5) as app:
        assert app.call("GET", "c:a") is None
        for words in ("GET", "d:a"), ("SET", "c:a", "1"):
            with pytest.raises(resp.Refused, match="NOPERM"):
                app.call(*words)
    assert server.cli("SET", "c:a", "1") == b"OK"


def secured(server: part.Redis, authority: Path, client: Path | None = None) -> bytes:
    """The answer to PING over TLS."""
    context = ssl.create_default_context(cafile=authority)
    if client:
        context.load_cert_chain(client)
    with (
        socket.create_connection(server.address, 5) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as wrapped,
    ):
        wrapped.sendall(resp.pack("PING"))
        return wrapped.recv(100)


def test_tls(redis_start):  # noqa: F811
    server, made = redis_start(tls="server", search=False), part.certificates()
    assert server.url == f"rediss://localhost:{server.port}/0"
    assert secured(server, made.authority) == b"+PONG\r\n"
    with pytest.raises(ssl.SSLCertVerificationError):
        secured(server, made.stranger)
    server.freeze()
    with socket.create_connection(server.address, 0.1) as plain, pytest.raises(TimeoutError):
        ssl.create_default_context(cafile=made.authority).wrap_socket(plain, server_hostname="localhost")
    server.thaw()
    server.kill()
    with pytest.raises(ConnectionRefusedError):
        secured(server, made.authority)
    server.restart()
    assert secured(server, made.authority) == b"+PONG\r\n"


def test_tls_with_the_clients_certificate(redis_start):  # noqa: F811
    server, made = redis_start(tls="mutual", search=False), part.certificates()
    assert secured(server, made.authority, made.client) == b"+PONG\r\n"
    try:
        answer = secured(server, made.authority)
    except (ssl.SSLError, ConnectionError):
        answer = b""
    assert answer == b""


def test_valkey(redis_start):  # noqa: F811
    server = redis_start(server="valkey", search=False)
    assert server.info()["server_name"] == "valkey"
    server.cli("SET", "k", "v")
    assert server.cli("GET", "k") == b"v"


def test_sentinels_follow_a_failover(tmp_path):
    primary = part.start(tmp_path / "primary", search=False)
    replica = redis_fleet.replica(tmp_path / "replica", primary, search=False)
    primary.cli("SET", "k", "v")
    primary.cli("WAIT", 1, 5000)
    watch = redis_fleet.sentinel(tmp_path, primary, [replica], count=3)
    try:
        assert watch.primary() == primary.port
        with pytest.raises(resp.Refused, match="READONLY"):
            replica.cli("SET", "k", "w")
        primary.kill()
        assert watch.moved(primary.port) == replica.port
        assert replica.cli("GET", "k") == b"v"
        assert replica.cli("SET", "k", "w") == b"OK"
    finally:
        for one in watch, primary, replica:
            one.stop()


def test_a_failover_with_the_primary_alive(tmp_path):
    primary = part.start(tmp_path / "primary", search=False)
    replica = redis_fleet.replica(tmp_path / "replica", primary, search=False)
    watch = redis_fleet.sentinel(tmp_path, primary, [replica])
    try:
        assert watch.fail_over() == replica.port
        assert replica.info("replication")["role"] == "master"
    finally:
        for one in watch, primary, replica:
            one.stop()


def test_a_cluster(tmp_path):
    cluster = redis_fleet.cluster(tmp_path)
    try:
        home = cluster.home("{a}k")
        assert home.cli("SET", "{a}k", "v") == b"OK"
        other = next(node for node in cluster.nodes if node is not home)
        with pytest.raises(resp.Refused, match="MOVED"):
            other.cli("GET", "{a}k")
        cluster.move("{a}k", other)
        assert other.cli("GET", "{a}k") == b"v"
        assert cluster.home("{a}k") is other
        with pytest.raises(resp.Refused, match="MOVED"):
            home.cli("GET", "{a}k")
    finally:
        cluster.stop()


def test_a_cluster_without_coordinator_searches_one_slot(tmp_path):
    """An index lives on the node of its name's slot and sees that node's keys: with one hash tag for both it is whole,
    without it sees a part only, and every other node answers MOVED."""
    cluster = redis_fleet.cluster(tmp_path, search=True)
    try:
        home = cluster.home("{x}i")
        make_index(home, "{x}i", "{x}d:")
        fill(home, "{x}d:")
        assert nearest(home, "{x}i") == [b"{x}d:2", b"{x}d:1"]
        make_index(home, "{x}wide", "w:")
        for number in range(30):
            cluster.home(f"w:{number}").cli("HSET", f"w:{number}", "p", "a")
        assert 0 < home.cli("FT.SEARCH", "{x}wide", "*", "NOCONTENT")[0] < 30
        other = next(node for node in cluster.nodes if node is not home)
        with pytest.raises(resp.Refused, match="MOVED"):
            other.cli("FT.SEARCH", "{x}i", "*")
    finally:
        cluster.stop()


STARTS = """
import sys, time
from pathlib import Path
from tests.parts import redis
server = redis.start(Path(sys.argv[1]), tls="server", search=False)
print(*(process.pid for process in server.processes), flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("frozen", [False, True])
def test_it_dies_with_who_started_it(tmp_path, frozen):
    starter = subprocess.Popen([sys.executable, "-c", STARTS, str(tmp_path / "r")], stdout=subprocess.PIPE, cwd=ROOT)
    pids = [int(word) for word in starter.stdout.readline().split()]
    assert len(pids) == 2
    assert all(alive(pid) for pid in pids)
    if frozen:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
    starter.kill()
    starter.wait()
    starter.stdout.close()
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_server_that_cannot_start_says_why(tmp_path):
    with pytest.raises(place.CannotInstall, match="no-such-word"):
        part.start(tmp_path / "r", config=["no-such-word 1"])
