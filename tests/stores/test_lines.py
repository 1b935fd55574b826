"""A file of lines: whole, bounded, for its owner alone; and nobody waits for the disk."""

import logging
import os
import stat
import threading

import pytest

from cacheproxy.stores import lines as module
from cacheproxy.stores.lines import Lines
from tests.rig import until


@pytest.fixture
async def file(tmp_path):
    made: list[Lines] = []

    def make(name: str = "near.jsonl", most: int = 1000) -> Lines:
        made.append(Lines(tmp_path / name, most))
        return made[-1]

    yield make
    for one in made:
        await one.close()


async def test_lines_are_appended_in_order(file, tmp_path):
    (tmp_path / "near.jsonl").write_bytes(b"before\n")
    one = file()
    assert all(one.write(b"%d\n" % number) for number in range(100))
    await one.close()
    assert (tmp_path / "near.jsonl").read_bytes() == b"before\n" + b"".join(b"%d\n" % n for n in range(100))
    assert one.dropped == 0


async def test_it_is_for_the_owner_alone_also_if_it_was_there(file, tmp_path):
    (tmp_path / "near.jsonl").touch(0o644)
    for name in ("near.jsonl", "new.jsonl"):
        one = file(name)
        one.write(b"a\n")
        await one.close()
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


async def test_nothing_is_made_before_the_first_line(file, tmp_path):
    before = threading.active_count()
    await file().close()
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() == before


async def test_a_full_file_makes_room_for_another_one_and_no_more(file, tmp_path):
    one = file(most=1000)
    for number in range(500):
        assert one.write(b"%099d\n" % number)
    await one.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["near.jsonl", "near.jsonl.1"]
    old, new = (tmp_path / "near.jsonl.1").read_bytes(), (tmp_path / "near.jsonl").read_bytes()
    assert (len(old), len(new)) == (1000, 1000)
    assert [int(line) for line in (old + new).splitlines()] == list(range(480, 500))


async def test_a_line_larger_than_the_file_is_written_alone(file, tmp_path):
    (tmp_path / "near.jsonl.1").write_bytes(b"older\n")
    one = file(most=10)
    one.write(b"x" * 50 + b"\n")
    await until(lambda: (tmp_path / "near.jsonl").exists() and (tmp_path / "near.jsonl").stat().st_size)
    assert (tmp_path / "near.jsonl.1").read_bytes() == b"older\n"
    one.write(b"y\n")
    await one.close()
    assert (tmp_path / "near.jsonl").read_bytes() == b"y\n"


async def test_a_slow_disk_costs_lines_and_nobody_waits(file, monkeypatch, tmp_path):
    gate = threading.Event()
    real = os.write

    def slow(descriptor, data):
        gate.wait(30)
        return real(descriptor, data)

    monkeypatch.setattr(module.os, "write", slow)
    one = file(most=10**6)
    taken = [one.write(b"x\n") for _ in range(module.WAITING + 50)]
    assert taken.count(False) == one.dropped
    assert 48 <= one.dropped <= 50
    gate.set()
    await one.close()
    assert len((tmp_path / "near.jsonl").read_bytes()) == 2 * taken.count(True)


async def test_the_end_does_not_wait_for_a_disk_that_hangs(file, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(module.os, "write", lambda *_: gate.wait(30) and 1)
    monkeypatch.setattr(module, "CLOSING", 0.01)
    one = file()
    for _ in range(module.WAITING + 10):
        one.write(b"x\n")
    await one.close()
    assert not gate.is_set()
    gate.set()


async def test_a_failing_disk_is_told_once_and_tried_again(file, tmp_path, caplog, monkeypatch):
    def warnings() -> list[str]:
        return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]

    place = tmp_path / "later"
    one = file("later/near.jsonl")
    for _ in range(5):
        one.write(b"lost\n")
    await until(lambda: one.dropped == 5)
    assert warnings() == [f"nothing is written to {place / 'near.jsonl'}: No such file or directory"]
    place.mkdir()
    one.write(b"kept\n")
    await until(lambda: (place / "near.jsonl").exists() and (place / "near.jsonl").stat().st_size == 5)
    assert len(warnings()) == 1

    def full(descriptor, data):
        return real(descriptor, data[:3])

    real = os.write
    monkeypatch.setattr(module.os, "write", full)
    one.write(b"lost\n")
    await until(lambda: one.dropped == 6)
    assert warnings()[1:] == [f"nothing is written to {place / 'near.jsonl'}: No space left on device"]
    await one.close()
    assert (place / "near.jsonl").read_bytes() == b"kept\n"


async def test_what_was_there_counts(file, tmp_path):
    (tmp_path / "near.jsonl").write_bytes(b"x" * 900)
    one = file(most=1000)
    one.write(b"a" * 99 + b"\n")
    one.write(b"b\n")
    await one.close()
    assert len((tmp_path / "near.jsonl.1").read_bytes()) == 1000
    assert (tmp_path / "near.jsonl").read_bytes() == b"b\n"


async def test_it_follows_no_link(file, tmp_path):
    (tmp_path / "other").write_bytes(b"")
    (tmp_path / "near.jsonl").symlink_to(tmp_path / "other")
    one = file()
    one.write(b"x\n")
    await until(lambda: one.dropped == 1)
    assert (tmp_path / "other").read_bytes() == b""
