"""The lock files: complete for what is declared, with hashes, and free of places."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.rig import ROOT

LOCKS = ROOT / "configs" / "lock"
PARTS = ROOT / "tests" / "parts"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
RUN = [*PROJECT["project"]["dependencies"], *EXTRAS["fast"], *EXTRAS["semantic"]]
DECLARED = {
    LOCKS / "requirements.txt": RUN,
    LOCKS / "dev.txt": [*RUN, *PROJECT["dependency-groups"]["dev"]],
    LOCKS / "build.txt": [*PROJECT["build-system"]["requires"], (LOCKS / "build.in").read_text().strip()],
    **{pins: pins.with_suffix(".in").read_text().split() for pins in PARTS.glob("*.txt")},
}


def pinned(lock: Path) -> dict[str, list[str]]:
    """Name -> versions: more than one where another Python has another."""
    versions: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==([^ ;\\]+)", lock.read_text(), re.MULTILINE):
        versions.setdefault(canonicalize_name(name), []).append(version)
    return versions


def name_of(block: str) -> str:
    return canonicalize_name(re.match(r"[A-Za-z0-9_.-]+", block)[0])


@pytest.mark.parametrize("lock", DECLARED, ids=lambda path: path.name)
def test_what_is_declared_is_locked(lock):
    """``make lock`` was run after the last change of a declaration."""
    versions = pinned(lock)
    for text in DECLARED[lock]:
        requirement = Requirement(text)
        locked = versions.get(canonicalize_name(requirement.name), [])
        assert locked, f"{requirement.name} is not in {lock.name}: run make lock"
        assert all(v in requirement.specifier for v in locked), (
            f"{requirement} but {lock.name}: {locked}: run make lock"
        )


@pytest.mark.parametrize("lock", DECLARED, ids=lambda path: path.name)
def test_every_pin_has_hashes_and_no_place(lock):
    text = lock.read_text()
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == sum(map(len, pinned(lock).values())) > 0
    assert all("; python" in block.split("\\")[0] for block in blocks if len(pinned(lock)[name_of(block)]) > 1)
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", block) for block in blocks)
    assert not re.search(r"://|^-|--(index|extra-index|find-links)|(?<!\w)/\w", text, re.MULTILINE)


def test_the_tests_run_with_what_users_get():
    run, dev = pinned(LOCKS / "requirements.txt"), pinned(LOCKS / "dev.txt")
    assert {name: dev.get(name) for name in run} == run


def test_the_lock_of_the_node_client_names_no_place():
    text = (PARTS / "node" / "package-lock.json").read_text()
    assert '"integrity": "sha512-' in text
    assert "://" not in text
