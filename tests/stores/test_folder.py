"""A folder on the disk: what is read of it, and what never."""

import os
from pathlib import Path

import pytest

from cacheproxy.core.snapshot import NOTHING, Snapshot
from cacheproxy.errors import Trouble
from cacheproxy.stores import folder as module
from cacheproxy.stores.folder import Folder

ROOMY = {"most_files": 1000, "most_bytes": 10**6}


@pytest.fixture
def place(tmp_path) -> Path:
    (tmp_path / "kb" / "sub").mkdir(parents=True)
    (tmp_path / "kb" / "a.md").write_text("A")
    (tmp_path / "kb" / "sub" / "b é.md").write_text("B")
    return tmp_path / "kb"


@pytest.fixture
def old(monkeypatch) -> None:
    """All files have long been at rest."""
    monkeypatch.setattr(module, "FRESH", -(10**18))


def names(snapshot: Snapshot) -> set[str]:
    return set(snapshot.files)


def reads(monkeypatch) -> list[int]:
    """Grows by one with each file that is read."""
    seen: list[int] = []
    inner = module._digest
    monkeypatch.setattr(module, "_digest", lambda *told: seen.append(1) or inner(*told))
    return seen


def test_files_are_named_by_their_path_in_it(place):
    assert names(Folder(place, **ROOMY).scan(NOTHING)) == {"a.md", "sub/b é.md"}


def test_a_file_alone_is_a_folder_of_one(place, tmp_path):
    (tmp_path / "now.md").symlink_to(place / "a.md")
    one, other = (Folder(path, **ROOMY).scan(NOTHING) for path in (place / "a.md", tmp_path / "now.md"))
    assert names(one) == {"a.md"}
    assert names(other) == {"now.md"}


def test_where_it_lies_and_when_it_was_written_is_no_part_of_the_version(place, tmp_path):
    before = Folder(place, **ROOMY).scan(NOTHING)
    os.utime(place / "a.md", (1, 1))
    place.rename(tmp_path / "moved")
    assert Folder(tmp_path / "moved", **ROOMY).scan(NOTHING).version == before.version


def test_what_has_not_changed_is_not_read_again(place, old, monkeypatch):
    read = reads(monkeypatch)
    folder = Folder(place, **ROOMY)
    first = folder.scan(NOTHING)
    assert folder.scan(first) == first
    assert len(read) == 2
    (place / "a.md").write_text("C")
    second = folder.scan(first)
    assert len(read) == 3
    assert second.changed(first) == {"a.md"}


def test_the_same_size_and_time_do_not_hide_a_change(place, old):
    """A copy that keeps times, such as ``cp -p``: the time of the change itself cannot be set."""
    folder = Folder(place, **ROOMY)
    first, times = folder.scan(NOTHING), os.stat(place / "a.md")
    (place / "new").write_text("X")
    os.utime(place / "new", ns=(times.st_atime_ns, times.st_mtime_ns))
    (place / "new").rename(place / "a.md")
    assert folder.scan(first).changed(first) == {"a.md"}


def test_a_file_that_was_just_written_is_read_again(place, monkeypatch):
    """What is written within one tick of the file system's clock leaves no mark."""
    read = reads(monkeypatch)
    folder = Folder(place, **ROOMY)
    folder.scan(folder.scan(NOTHING))
    assert len(read) == 4


def test_links_lead_nowhere_outside(place, tmp_path):
    """As mounted configuration has them: through a link inside to a file inside."""
    (tmp_path / "secret").write_text("S")
    (tmp_path / "kb-beside").mkdir()
    (tmp_path / "kb-beside" / "s").write_text("S")
    (place / "..data").mkdir()
    (place / "..data" / "c.md").write_text("C")
    for name, target in {
        "out": "../secret", "beside": "../kb-beside/s", "gone": "nowhere", "loop": "loop", "up": "..",
        "whole": str(place), "c.md": "..data/c.md",
    }.items():  # fmt: skip
        (place / name).symlink_to(target)
    assert names(Folder(place, **ROOMY).scan(NOTHING)) == {"a.md", "sub/b é.md", "c.md"}


def test_hidden_names_and_what_is_no_file_do_not_count(place):
    (place / ".git").mkdir()
    (place / ".git" / "HEAD").write_text("x")
    (place / ".a.md.swp").write_text("x")
    os.mkfifo(place / "pipe")
    assert names(Folder(place, **ROOMY).scan(NOTHING)) == {"a.md", "sub/b é.md"}


def test_a_pipe_that_took_the_place_of_a_file_holds_nothing_up(place):
    os.mkfifo(place / "pipe")
    assert module._print(place / "pipe", None, 10) is None


def test_what_vanishes_while_it_is_read_was_not_there(place, monkeypatch):
    inner = module._print

    def vanishing(path, *told):
        if path.name == "a.md":
            path.unlink()
        return inner(path, *told)

    monkeypatch.setattr(module, "_print", vanishing)
    assert names(Folder(place, **ROOMY).scan(NOTHING)) == {"sub/b é.md"}


def test_names_that_are_no_text_can_be_told(place):
    os.close(os.open(os.fsencode(place) + b"/\xff", os.O_CREAT | os.O_WRONLY))
    found = Folder(place, **ROOMY).scan(NOTHING)
    assert "\\xff" in names(found)
    assert found.version


def test_a_folder_that_is_not_there_or_too_large_is_trouble(place):
    with pytest.raises(Trouble, match="cannot be read: No such file"):
        Folder(place / "none", **ROOMY).scan(NOTHING)
    with pytest.raises(Trouble, match="more than 1 files"):
        Folder(place, most_files=1, most_bytes=10**6).scan(NOTHING)
    with pytest.raises(Trouble, match="more than 1 bytes"):
        Folder(place, most_files=10, most_bytes=1).scan(NOTHING)
    assert len(Folder(place, most_files=2, most_bytes=2).scan(NOTHING).files) == 2


def test_an_empty_folder_is_one_too(tmp_path):
    assert Folder(tmp_path, **ROOMY).scan(NOTHING) == NOTHING


def test_what_was_found_is_remembered_as_it_was(place, tmp_path, old):
    folder = Folder(place, memory=tmp_path / "data" / "kb.json", **ROOMY)
    assert folder.remembered() is None
    found = folder.scan(NOTHING)
    folder.remember(found)
    assert folder.remembered() == found
    assert (tmp_path / "data" / "kb.json").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path / "data") == ["kb.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": "x", "files": []}', '{"version": 1, "files": [["a"]]}'])
def test_a_memory_that_cannot_be_read_is_none(place, tmp_path, text):
    (tmp_path / "kb.json").write_text(text)
    assert Folder(place, memory=tmp_path / "kb.json", **ROOMY).remembered() is None


def test_a_memory_that_cannot_be_kept_is_trouble(place, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Trouble, match="cannot write"):
        Folder(place, memory=tmp_path / "file" / "kb.json", **ROOMY).remember(NOTHING)
