"""``make run``: a small real model, the proxy before it, and three lines to try. Standard library only."""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from tests.parts import embedder, engine, place

ASKED = "Is it safe to turn off the firewall? Answer in one word."
LIKE = "Is turning off the firewall safe? Answer in one word."
OPPOSITE = "Is it unsafe to turn off the firewall? Answer in one word."
"""To the embedding model these two are equally near to the first."""
READY_SECONDS = 30


class CannotRun(Exception):
    """The message is one sentence for a person."""


def refuse_taken(port: int, name: str, variable: str) -> None:
    """Raise `CannotRun` if nothing can listen on `port`."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise CannotRun(
                f"The {name} cannot listen on port {port} ({error.strerror}): "
                f"stop what uses it, or say make run {variable}=<another port>."
            ) from None


def start_proxy(upstream: str, model: Path, port: int, admin_port: int, log: Path) -> subprocess.Popen:
    """Start the proxy, answers in memory only, and wait until it is ready."""
    command = [
        sys.executable, "-m", "cacheproxy", "serve", "--upstream", upstream, "--data-dir", "none",
        "--port", str(port), "--admin-port", str(admin_port),
    ]  # fmt: skip
    # A process group of its own: Ctrl-C reaches this script alone, which then ends the proxy before the engine.
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=place.ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            env={
                **os.environ, "CACHEPROXY_DRAIN__GRACE": "0", "CACHEPROXY_DRAIN__TIMEOUT": "2",
                "CACHEPROXY_SEMANTIC__MODEL_PATH": str(model),
            },
        )  # fmt: skip
    deadline = time.monotonic() + READY_SECONDS
    try:
        while not _answers(f"http://127.0.0.1:{admin_port}/readyz"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise CannotRun(f"The proxy did not start: {log.read_text(errors='replace').strip()}")
            time.sleep(0.05)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process


def _answers(url: str) -> bool:
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=1) as answer:
            return answer.status == 200
    except OSError:
        return False


def end(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def call(port: int, question: str, *, stream: bool = False) -> str:
    """A line for a shell that asks the proxy."""
    asked = {"model": engine.MODEL, "temperature": 0, "messages": [{"role": "user", "content": question}]}
    body = json.dumps({**asked, "stream": True} if stream else asked)
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    return f"curl -sS -i{' -N' if stream else ''} {url} -H 'Content-Type: application/json' -d '{body}'"


def advice(port: int, admin_port: int) -> str:
    """What to type next."""
    return f"""
Ready. In another terminal, ask once (X-Cache: MISS, the model answers):

  {call(port, ASKED)}

the same again (X-Cache: HIT, the model is not asked):

  {call(port, ASKED)}

the same as a stream (X-Cache: HIT):

  {call(port, ASKED, stream=True)}

in other words (X-Cache: HIT, X-Cache-Tier: semantic):

  {call(port, LIKE)}

and the opposite, in nearly the same words (X-Cache: MISS, X-Cache-Reason: unlike):

  {call(port, OPPOSITE)}

Admin page: http://127.0.0.1:{admin_port}/
Any OpenAI client: OPENAI_BASE_URL=http://127.0.0.1:{port}/v1 OPENAI_API_KEY=any
Ctrl-C ends it.
"""


def demo(port: int, admin_port: int) -> None:
    """Run until interrupted."""
    refuse_taken(port, "proxy", "PORT")
    refuse_taken(admin_port, "admin page", "ADMIN_PORT")
    if port == admin_port:
        raise CannotRun("PORT and ADMIN_PORT are the same: choose another for one of them.")
    with contextlib.ExitStack() as stack:
        engine.install()
        meaning = embedder.install()
        print("starting the model ...", flush=True)
        model = engine.start(place.PARTS / "engine.log")
        stack.callback(model.stop)
        proxy = start_proxy(model.url, meaning, port, admin_port, place.PARTS / "proxy.log")
        stack.callback(end, proxy)
        print(advice(port, admin_port), flush=True)
        while model.running and proxy.poll() is None:
            time.sleep(0.2)
        who, log = ("proxy", "proxy.log") if model.running else ("model", "engine.log")
        raise CannotRun(f"The {who} ended by itself; its log is {place.PARTS / log}.")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make run", description=__doc__)
    parser.add_argument("--port", type=int, default=8800)
    parser.add_argument("--admin-port", type=int, default=8801)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        demo(options.port, options.admin_port)
    except (CannotRun, place.CannotInstall) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nended")
    return 0


if __name__ == "__main__":
    sys.exit(main())
