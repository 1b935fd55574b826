"""A folder as it was found: which files with which content. Its version is a hash of both.

The version is the same wherever the folder lies and whenever its files were written.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from cacheproxy.core import controls
from cacheproxy.core.knowledge import MOST_DOCUMENTS

DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Print:
    """One file. `mark`: by what it is known that its content has not changed (size, times, place on the disk); empty if
    that cannot be told yet. `digest`: the hash of its content."""

    mark: tuple[int, ...]
    digest: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of a folder, by their path in it, with ``/`` between its parts."""

    files: Mapping[str, Print]

    @property
    def version(self) -> str:
        """A hash of the paths and contents, 32 hexadecimal digits."""
        whole = hashlib.blake2b(digest_size=DIGEST_BYTES, person=b"kb folder")
        for path, one in sorted(self.files.items()):
            name = path.encode()
            whole.update(len(name).to_bytes(8, "big") + name + one.digest)
        return whole.hexdigest()

    def says_the_same(self, other: "Snapshot") -> bool:
        """Whether the same files have the same content."""
        if self.files == other.files:
            return True  # quick, where the files are known from before
        return self.files.keys() == other.files.keys() and all(
            one.digest == other.files[path].digest for path, one in self.files.items()
        )

    def changed(self, before: "Snapshot") -> frozenset[str] | None:
        """The files that came, went or changed since `before`; None if they are too many to be named, or one has a
        name that no answer could give."""
        both = self.files.keys() | before.files.keys()
        found = frozenset(path for path in both if _digest(self, path) != _digest(before, path))
        longest = max((len(path.encode()) for path in found), default=0)
        return found if len(found) <= MOST_DOCUMENTS and longest <= controls.MAX_NAME_BYTES else None


def _digest(snapshot: Snapshot, path: str) -> bytes | None:
    one = snapshot.files.get(path)
    return one.digest if one is not None else None


NOTHING = Snapshot({})
