"""A full disk, a directory that may not be written: trouble at opening, and never more than trouble while running."""

import json
import subprocess
import sys

import pytest

from cacheproxy.stores.sqlite import Sqlite
from tests.rig import ROOT
from tests.stores.entries import entry


def play(scene: str, path) -> dict:
    """What happened in a process of its own; anything it says on standard error is a failure."""
    command = [sys.executable, "-m", "tests.stores.hardship", scene, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
    return json.loads(done.stdout)


@pytest.mark.parametrize("scene", ["full at opening", "read-only directory"])
@pytest.mark.parametrize("there", [False, True], ids=["no file yet", "a file is there"])
async def test_a_place_that_cannot_be_written_is_trouble_at_opening(tmp_path, scene, there):
    path = tmp_path / "data" / "cache.sqlite3"
    path.parent.mkdir()
    if there:
        store = Sqlite(path, 10_000_000)
        await store.put(entry(1))
        await store.close()
        for left in path.parent.glob("*-*"):
            left.unlink()
    try:
        seen = play(scene, path)
    finally:
        path.parent.chmod(0o755)
    assert seen["trouble"] is not None
    assert "cannot use" in seen["trouble"]
    assert "cache.sqlite3" in seen["trouble"]
    assert seen["threads"] == 1


def test_a_disk_that_fills_up_costs_entries_only(tmp_path):
    """B78: what could not be written does not count, what was written is served, and it goes on when there is room.
    B63: the state is told in a line or two, not once for every batch."""
    seen = play("full while running", tmp_path / "cache.sqlite3")
    said = seen.pop("lines")
    assert seen == {"alive": True, "first": True, "after": True, "honest": True}
    assert 1 <= len(said) <= 3, said


def test_damage_on_a_full_disk_is_survived(tmp_path):
    """The damaged file goes aside once, no flood of lines or files, and the store is whole again with room."""
    seen = play("full when damaged", tmp_path / "cache.sqlite3")
    said = seen.pop("lines")
    assert seen.pop("aside") in (1, 2)
    assert seen == {"others": [], "after": True, "alive": True}
    assert 1 <= len(said) <= 4, said
