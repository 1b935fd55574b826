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
RUN = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["fast"]]
DECLARED = {
    LOCKS / "requirements.txt": RUN,
    LOCKS / "dev.txt": [*RUN, *PROJECT["dependency-groups"]["dev"]],
    LOCKS / "build.txt": [*PROJECT["build-system"]["requires"], (LOCKS / "build.in").read_text().strip()],
    **{pins: pins.with_suffix(".in").read_text().split() for pins in PARTS.glob("*.txt")},
}


def pinned(lock: Path) -> dict[str, str]:
    """Name -> version."""
    found = re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==([^ ;\\]+)", lock.read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


@pytest.mark.parametrize("lock", DECLARED, ids=lambda path: path.name)
def test_what_is_declared_is_locked(lock):
    """``make lock`` was run after the last change of a declaration."""
    versions = pinned(lock)
    for text in DECLARED[lock]:
        requirement = Requirement(text)
        version = versions.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in {lock.name}: run make lock"
        assert version in requirement.specifier, f"{requirement} but {lock.name} has {version}: run make lock"


@pytest.mark.parametrize("lock", DECLARED, ids=lambda path: path.name)
def test_every_pin_has_hashes_and_no_place(lock):
    text = lock.read_text()
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(pinned(lock)) > 0
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", block) for block in blocks)
    assert not re.search(r"://|^-|--(index|extra-index|find-links)|(?<!\w)/\w", text, re.MULTILINE)


def test_the_tests_run_with_what_users_get():
    run, dev = pinned(LOCKS / "requirements.txt"), pinned(LOCKS / "dev.txt")
    assert {name: dev.get(name) for name in run} == run


def test_the_lock_of_the_node_client_names_no_place():
    text = (PARTS / "node" / "package-lock.json").read_text()
    assert '"integrity": "sha512-' in text
    assert "://" not in text
