"""What is sealed can be read with the secret, for the name and purpose that it was sealed for, and not else."""

import pytest

from cacheproxy.stores.sealing import Sealing

SECRET = b"s" * 32
SEALED = Sealing(lambda: SECRET).seal(b"name", b"order", b"what nobody may read")


def opened(sealed: bytes, secret: bytes = SECRET, name: bytes = b"name", purpose: bytes = b"order") -> bytes | None:
    return Sealing(lambda: secret).open(name, purpose, sealed)


def test_what_was_sealed_opens_and_shows_nothing():
    assert opened(SEALED) == b"what nobody may read"
    assert b"nobody" not in SEALED
    assert Sealing(lambda: SECRET).seal(b"name", b"order", b"what nobody may read") != SEALED


@pytest.mark.parametrize("other", [{"secret": b"t" * 32}, {"name": b"other"}, {"purpose": b"reply"}])
def test_it_opens_for_nothing_else(other):
    assert opened(SEALED, **other) is None


def test_any_change_of_it_is_seen():
    for at in range(len(SEALED)):
        changed = bytearray(SEALED)
        changed[at] ^= 1
        assert opened(bytes(changed)) is None
        assert opened(SEALED[:at]) is None
    assert opened(SEALED + b"x") is None


def test_it_is_sealed_with_the_secret_as_it_is_now():
    secrets = [SECRET]
    sealing = Sealing(lambda: secrets[-1])
    sealed = sealing.seal(b"name", b"order", b"x")
    secrets.append(b"t" * 32)
    assert sealing.open(b"name", b"order", sealed) is None
