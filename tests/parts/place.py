"""A part: something that the suites or the demo need besides the project, in a place of its own under ``.parts/``.

Every part is pinned, with hashes, in a file beside this one; it is installed once and again when that file changes.
Standard library only: the demo runs this without the development packages.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PARTS = ROOT / ".parts"
MARK = "installed"


class CannotInstall(Exception):
    """A part could not be installed; the message is one for a person."""


def run(*command: str | Path) -> None:
    """Run a command of an installation; its output is shown only when it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
    )
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise CannotInstall(f"`{' '.join(words)}` failed with exit code {done.returncode}:\n{tail}")


def install(name: str, pins: list[Path], build: Callable[[Path], None], *, say: Callable[[str], None] = print) -> Path:
    """The place of part `name`, built by `build` unless it is there and made from the same `pins`."""
    place = PARTS / name
    wanted = hashlib.sha256(b"\0".join([sys.version.encode(), *(pin.read_bytes() for pin in pins)])).hexdigest()
    with _alone(name):
        mark = place / MARK
        if mark.exists() and mark.read_text() == wanted:
            return place
        say(f"installing {name} into {place.relative_to(ROOT)} (once) ...")
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        build(place)
        mark.write_text(wanted)
    return place


def python_part(name: str, *, say: Callable[[str], None] = print) -> Path:
    """The Python of a virtual environment with the packages of ``NAME.txt``."""
    pins = HERE / f"{name}.txt"
    return python_of(install(name, [pins], lambda place: environment(place, pins), say=say))


def environment(place: Path, pins: Path) -> None:
    """Make a virtual environment in `place` with the packages of `pins`."""
    run(sys.executable, "-m", "venv", place)
    run(python_of(place), "-m", "pip", "install", "--quiet", "--no-compile", "--require-hashes", "-r", pins)


def python_of(place: Path) -> Path:
    return place / "bin" / "python"


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """One installation of a part at a time, among all processes."""
    PARTS.mkdir(exist_ok=True)
    with (PARTS / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
