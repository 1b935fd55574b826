"""A folder's version says what its files say, and nothing else."""

from cacheproxy.core.controls import MAX_NAME_BYTES
from cacheproxy.core.knowledge import MOST_DOCUMENTS
from cacheproxy.core.snapshot import NOTHING, Print, Snapshot


def found(**files: bytes) -> Snapshot:
    return Snapshot({name: Print((), digest) for name, digest in files.items()})


def test_the_version_is_that_of_names_and_contents_alone():
    one = Snapshot({"a": Print((1, 2), b"x"), "b": Print((3,), b"y")})
    other = Snapshot({"b": Print((), b"y"), "a": Print((7,), b"x")})
    assert one.version == other.version
    assert one.says_the_same(other)


def test_another_content_name_or_number_of_files_is_another_version():
    versions = [
        NOTHING.version, found(a=b"x").version, found(a=b"y").version, found(b=b"x").version,
        found(a=b"x", b=b"x").version, found(a=b"y", b=b"x").version, found(a=b"x", b=b"y").version,
        Snapshot({"ax": Print((), b"")}).version,
    ]  # fmt: skip
    assert len(set(versions)) == len(versions)


def test_changed_are_files_that_came_went_and_differ():
    before, after = found(a=b"1", b=b"1", c=b"1"), found(a=b"1", b=b"2", d=b"1")
    assert after.changed(before) == {"b", "c", "d"}
    assert not after.says_the_same(before)
    assert not found(a=b"1").says_the_same(found(b=b"1"))


def test_what_is_too_much_to_name_is_not_named():
    many = found(**{f"f{n}": b"" for n in range(MOST_DOCUMENTS)})
    assert len(many.changed(NOTHING)) == MOST_DOCUMENTS
    assert found(**many_and_one(many)).changed(NOTHING) is None
    assert Snapshot({"é" * (MAX_NAME_BYTES // 2 + 1): Print((), b"")}).changed(NOTHING) is None
    longest = "é" * (MAX_NAME_BYTES // 2)
    assert Snapshot({longest: Print((), b"")}).changed(NOTHING) == {longest}


def many_and_one(many: Snapshot) -> dict[str, bytes]:
    return {**dict.fromkeys(many.files, b""), "one": b""}
