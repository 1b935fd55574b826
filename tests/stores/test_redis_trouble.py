"""What went wrong with a Redis: each fault on the wire and each exception gets its kind, and no text of a command."""

import asyncio
import errno
import socket
import ssl

import pytest
from redis import exceptions as redis_errors
from redis.asyncio.sentinel import MasterNotFoundError

from cacheproxy.errors import Trouble
from cacheproxy.stores.redis_link import Link
from cacheproxy.stores.redis_trouble import TEXTS, Kind, trouble
from tests.fakes import relay as replies
from tests.parts import redis as part

SECRET = "Zq7Zq7Zq7"
OVER = 0.2
"""Seconds until a fault that is a silence is taken as one."""


async def failed(link: Link, *command) -> Trouble:
    """The trouble with a command that has a secret as key and value."""
    with pytest.raises(Exception) as caught:
        await link.redis.execute_command(*(command or ("SET", SECRET, SECRET)))
    found = trouble(caught.value)
    assert SECRET not in str(found)
    return found


SAID = [
    (replies.LOADING, "loading"), (replies.OOM, "oom"), (replies.READONLY, "readonly"),
    (replies.MASTERDOWN, "masterdown"), (replies.NOAUTH, "noauth"), (replies.MOVED, "moved"),
    (b"-ASK 1 127.0.0.1:1\r\n", "moved"), (b"-TRYAGAIN Multiple keys request during rehashing\r\n", "moved"),
    (b"-CLUSTERDOWN The cluster is down\r\n", "clusterdown"), (b"-NOPERM no permissions\r\n", "noperm"),
    (b"-ERR ACL failure in script: User u has no permissions to run the 'scard' command\r\n", "noperm"),
    (b"-WRONGPASS invalid username-password pair\r\n", "noauth"),
    (b"-BUSY Redis is busy running a script.\r\n", "busy"),
    (b"-UNKILLABLE Sorry the script already executed write commands\r\n", "busy"),
    (b"-ERR max number of clients reached\r\n", "refused"), (b"-ERR max number of clients + cluster\r\n", "refused"),
    (b"-ERR Zq7Zq7Zq7\r\n", "other"), (b"-MISCONF Redis is configured to save\r\n", "other"),
    (b"-WRONGTYPE Operation against a key\r\n", "other"), (b"-EXECABORT aborted\r\n", "other"),
    (b"-MOVED\r\n", "protocol"), (b"-MOVED x y\r\n", "protocol"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "protocol"),
    (b"$x\r\n", "protocol"), (b"*1\r\n$-7\r\nabc\r\n", "protocol"),
]  # fmt: skip


@pytest.mark.redis
@pytest.mark.parametrize(("reply", "kind"), SAID, ids=[repr(reply[:30]) for reply, _ in SAID])
async def test_what_the_server_says(relay, link_to, reply, kind):
    """B67: each refusal has its kind, and the next command is answered by the server again."""
    link = link_to(relay.url)
    relay.answer(reply, "SET", times=1)
    assert (await failed(link)).kind == kind
    assert await link.redis.set(SECRET, SECRET) is True


@pytest.mark.redis
async def test_a_refusal_to_log_in(redis_start, link_to):
    server = redis_start(search=False, acl=["user app on >pw ~* resetchannels -@all +get +client|setname +hello"])
    address = f"127.0.0.1:{server.port}"
    assert (await failed(link_to(f"redis://{address}"))).kind == "noauth"
    assert (await failed(link_to(f"redis://app:{SECRET}@{address}"))).kind == "noauth"
    assert (await failed(link_to(f"redis://{SECRET}:pw@{address}"))).kind == "noauth"
    assert (await failed(link_to(f"redis://app:pw@{address}"))).kind == "noperm"
    assert (await failed(link_to(f"redis://app:pw@{address}/1"))).kind == "noperm"


@pytest.mark.redis
async def test_faults_of_the_connection(relay, link_to):
    """B63: none of them is waited for longer than the deadline, and each is over when it is over."""
    link = link_to(relay.url, OVER)
    faults = {
        "reset": relay.reset,
        "timeout": relay.freeze,
        "protocol": lambda: relay.answer(b"?\r\n", "SET"),
    }
    for kind, fault in faults.items():
        assert await link.redis.get("k") is None
        if kind == "reset":
            relay.delay(10, ways=[replies.UP])
            asyncio.get_running_loop().call_later(0.05, fault)
        else:
            fault()
        assert (await failed(link)).kind == kind
        relay.clear()
    relay.refuse()
    relay.reset()
    await asyncio.sleep(0)
    assert (await failed(link)).kind in ("refused", "reset")  # by who sees the reset first
    assert (await failed(link)).kind == "refused"
    relay.accept()
    assert await link.redis.get("k") is None


@pytest.mark.redis
async def test_a_connection_that_ends_amidst_an_answer(relay, redis, link_to):
    redis.cli("SET", "k", b"x" * 1000)
    for resets in False, True:
        link = link_to(relay.url)
        await link.redis.ping()
        relay.cut(500, resets=resets)
        assert (await failed(link, "GET", "k")).kind == "reset"
        relay.clear()
        assert await link.redis.get("k") == b"x" * 1000


@pytest.mark.redis
async def test_a_full_pool(relay, link_to):
    link = link_to(relay.url, max_connections=1)
    link.redis.connection_pool.patience = OVER
    await link.redis.ping()
    relay.freeze()
    other = asyncio.ensure_future(link.redis.ping())
    await asyncio.sleep(0)
    assert (await failed(link)).kind == "pool"
    relay.clear()
    assert await other is True


@pytest.mark.redis
async def test_nobody_answers_while_a_connection_is_made(relay, link_to):
    link = link_to(relay.url, max_connections=1)
    link.redis.connection_pool.patience = OVER
    relay.freeze()
    assert (await failed(link)).kind == "timeout"


@pytest.mark.redis
async def test_what_is_not_taken(relay, link_to):
    """More than the buffers on the way hold."""
    link = link_to(relay.url, OVER, max_connections=1)
    await link.redis.ping()
    relay.freeze()
    assert (await failed(link, "SET", SECRET, b"x" * 50_000_000)).kind == "timeout"
    relay.clear()
    assert await link.redis.get(SECRET) is None


@pytest.mark.redis
async def test_tls(redis_start, relay, link_to, monkeypatch):
    made = part.certificates()
    server = redis_start(search=False, tls="mutual")
    ours = {"ca_file": str(made.authority)}
    shown = {"cert_file": str(made.client)}
    assert (await failed(link_to(server.url))).kind == "tls"
    assert (await failed(link_to(server.url, ca_file=str(made.stranger), **shown))).kind == "tls"
    assert (await failed(link_to(server.url, **ours))).kind in ("tls", "reset")  # the server just leaves
    plain = link_to(relay.url.replace("redis:", "rediss:"), OVER, **ours)
    plain.redis.connection_pool.connection_kwargs["deadline"] = OVER
    assert (await failed(plain)).kind == "timeout"  # a Redis waits for the rest of what it takes for a command
    assert (await failed(link_to(f"redis://127.0.0.1:{server.port}"))).kind in ("reset", "protocol")
    find = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *rest, **options: find("127.0.0.1", *rest, **options))
    assert (await failed(link_to(server.url.replace("localhost", "other.test"), **ours, **shown))).kind == "tls"


async def test_nobody_there(tmp_path, link_to, monkeypatch):
    link = link_to(f"unix://{tmp_path}/none.sock")
    assert (await failed(link)).kind == "refused"
    (tmp_path / "file.sock").touch()
    assert (await failed(link_to(f"unix://{tmp_path}/file.sock"))).kind == "refused"

    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert (await failed(link_to("redis://redis.invalid"))).kind == "dns"
    assert (await failed(link_to("redis+cluster://redis.invalid"))).kind == "dns"
    assert (await failed(link_to("redis+sentinel://redis.invalid,127.0.0.1:1/main"))).kind in ("dns", "refused")


RAISED = [
    (TimeoutError(), "timeout"), (redis_errors.TimeoutError(SECRET), "timeout"),
    (ConnectionRefusedError(errno.ECONNREFUSED, SECRET), "refused"), (OSError(errno.EHOSTUNREACH, SECRET), "refused"),
    (OSError("Multiple exceptions: " + SECRET), "refused"), (ConnectionResetError(SECRET), "reset"),
    (BrokenPipeError(), "reset"), (asyncio.IncompleteReadError(b"Zq7Zq7Zq7", 20), "reset"),
    (redis_errors.ConnectionError("Connection closed by server."), "reset"), (socket.gaierror(-2, SECRET), "dns"),
    (ssl.SSLCertVerificationError(SECRET), "tls"), (ssl.SSLError(SECRET), "tls"),
    (redis_errors.InvalidResponse(SECRET), "protocol"), (UnicodeDecodeError("utf-8", b"Zq7Zq7Zq7", 0, 1, SECRET), "protocol"),
    (KeyError(SECRET), "protocol"), (IndexError(SECRET), "protocol"), (TypeError(SECRET), "protocol"),
    (AttributeError(SECRET), "protocol"), (redis_errors.MaxConnectionsError(), "pool"),
    (redis_errors.SlotNotCoveredError(SECRET), "clusterdown"), (redis_errors.RedisClusterException(SECRET), "clusterdown"),
    (redis_errors.ClusterError("TTL exhausted."), "clusterdown"), (MasterNotFoundError(SECRET), "masterdown"),
    (redis_errors.AuthenticationWrongNumberOfArgsError(SECRET), "noauth"), (redis_errors.ResponseError(SECRET), "other"),
    (redis_errors.DataError(SECRET), "other"), (redis_errors.WatchError(), "other"), (MemoryError(), "other"),
    (OSError(errno.EMFILE, SECRET), "other"), (OSError(99999, SECRET), "other"), (RuntimeError(SECRET), "other"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind"), RAISED, ids=[type(error).__name__ for error, _ in RAISED])
def test_each_exception_has_a_kind(error, kind):
    found = trouble(error)
    assert found.kind == Kind(kind)
    assert str(found).startswith(TEXTS[found.kind])
    assert SECRET not in str(found) + repr(found)


def test_what_led_to_an_exception_counts():
    wrapped = redis_errors.RedisClusterException(SECRET)
    wrapped.__cause__ = redis_errors.ConnectionError(SECRET)
    wrapped.__cause__.__context__ = ssl.SSLError(SECRET)
    assert trouble(wrapped).kind == "tls"
    looped = redis_errors.ConnectionError()
    looped.__context__ = redis_errors.ConnectionError()
    looped.__context__.__context__ = looped
    assert trouble(looped).kind == "reset"


def test_the_number_of_a_system_error_is_named():
    assert str(trouble(OSError(errno.EMFILE, SECRET))) == "the command failed (OSError EMFILE)"


def test_trouble_is_itself():
    known = Trouble("as it is", "closed")
    assert trouble(known) is known
    wrapped = redis_errors.ConnectionError()
    wrapped.__cause__ = known
    assert trouble(wrapped) is known


def test_every_kind_has_its_text():
    assert set(TEXTS) == set(Kind)
    assert len(set(TEXTS.values())) == len(Kind)
