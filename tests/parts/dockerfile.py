"""Reads a Dockerfile and does what its build stage says, in a folder instead of an image."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.rig import ROOT


@dataclass
class Stage:
    """What follows one FROM: its base image, and its instructions in order."""

    base: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        return [text for instruction, text in self.steps if instruction == word]

    def one(self, word: str) -> str:
        (text,) = self.all(word)
        return text

    @property
    def environment(self) -> dict[str, str]:
        pairs = [pair for text in self.all("ENV") for pair in shlex.split(text)]
        return dict(pair.split("=", 1) for pair in pairs)

    def command(self, word: str) -> list[str]:
        """An instruction's command in exec form, options before it left out."""
        return json.loads(self.one(word)[self.one(word).index("[") :])


def stages(text: str) -> list[Stage]:
    """The stages of a Dockerfile."""
    found: list[Stage] = []
    joined = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    for line in filter(None, (line.strip() for line in joined.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found.append(Stage(base, name))
        else:
            found[-1].steps.append((word, rest))
    return found


def may_be_copied(source: str, ignore: str) -> bool:
    """Whether a .dockerignore that lists what is let in lets `source` in."""
    assert ignore.splitlines()[0] == "*"
    let_in = [line[1:] for line in ignore.splitlines() if line.startswith("!")]
    return any(source == name or source.startswith(f"{name}/") for name in let_in)


@dataclass
class Build:
    """Does the steps of a stage below `root`, with a plain virtual environment as the base image's Python."""

    root: Path
    ignore: str
    workdir: Path = Path()

    def __post_init__(self) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(self.root / "base")], check=True)
        self.path = f"{self.root / 'base' / 'bin'}:{os.environ['PATH']}"

    def inside(self, text: str) -> str:
        """`text` with the image's folders where they are here."""
        return re.sub(r"(?<![\w.:/])/(opt|data|src)\b", rf"{self.root}/\1", text)

    def do(self, stage: Stage) -> None:
        for word, text in stage.steps:
            {"WORKDIR": self._workdir, "COPY": self._copy, "RUN": self._run}[word](text)

    def _workdir(self, text: str) -> None:
        self.workdir = Path(self.inside(text))
        self.workdir.mkdir(parents=True)

    def _copy(self, text: str) -> None:
        *sources, target = text.split()
        for source in sources:
            assert may_be_copied(source, self.ignore), source
            place = self.workdir / target
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place = place / Path(source).name if target.endswith("/") else place
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, place)

    def _run(self, text: str) -> None:
        command = ["sh", "-ec", self.inside(text)]
        done = subprocess.run(
            command,
            cwd=self.workdir,
            env={**os.environ, "PATH": self.path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
