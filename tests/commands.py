"""Runs commands as a user does, each in a process of its own, quickly: they are forks of one that has imported it all.

As a program (``python -m tests.commands``) it is that one: a line of JSON on standard input is a command to run, a line
on standard output is its exit code.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LONGEST = 60
"""Seconds after which a command that does not end is killed."""


@dataclass
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """What it said on standard error, which has to be one line that begins with its name."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("cacheproxy: ")
        return lines[0]


class Commands:
    """Runs ``cacheproxy`` commands; output goes through files in `place`."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.commands"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    async def run(self, *arguments: str, environment: dict[str, str] | None = None) -> Done:
        """Run ``cacheproxy`` with `arguments`; of our own variables only those of `environment` are set."""
        return await asyncio.to_thread(self._run, arguments, environment or {})

    def _run(self, arguments: tuple[str, ...], environment: dict[str, str]) -> Done:
        out, err = self._place / "out", self._place / "err"
        order = {"arguments": arguments, "environment": environment, "out": str(out), "err": str(err)}
        with self._lock:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            code = json.loads(self._process.stdout.readline())
            done = Done(code, out.read_text(), err.read_text())
        assert "Traceback" not in done.err, done.err
        return done

    def close(self) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(LONGEST)


def _become(order: dict) -> None:
    """Turn this fork into the command."""
    signal.alarm(LONGEST)
    for name, target in ((os.devnull, 0), (order["out"], 1), (order["err"], 2)):
        opened = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, target)
        os.close(opened)
    for name in [n for n in os.environ if n.startswith("CACHEPROXY_")]:
        del os.environ[name]
    os.environ.update(order["environment"])
    sys.argv = ["cacheproxy", *order["arguments"]]
    sys.modules["__main__"].__package__ = None


def _serve() -> None:
    import yaml  # noqa: F401

    from cacheproxy import cli, report, wiring  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
            cli.main()
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _serve()
