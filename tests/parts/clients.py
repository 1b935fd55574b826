"""The real client packages, each in a place of its own. Standard library only."""

import shutil
from pathlib import Path

from tests.parts import place

PYTHON = ("openai", "langchain", "litellm", "pydantic_ai")
_NODE = place.HERE / "node"


def has_node() -> bool:
    return shutil.which("node") is not None and shutil.which("npm") is not None


def node_modules() -> Path:
    """The place with the packages of Node; scripts run from inside it."""
    pins = [_NODE / "package.json", _NODE / "package-lock.json"]
    return place.install("node", pins, lambda home: _build(home, pins))


def _build(home: Path, pins: list[Path]) -> None:
    for pin in pins:
        shutil.copy(pin, home)
    place.run("npm", "ci", "--prefix", home, "--ignore-scripts", "--no-audit", "--no-fund")
