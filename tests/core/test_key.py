"""Keys: no part can spell out another, nobody without the secret can make one, every one has a fixed size."""

import os
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cacheproxy.core import key
from tests.core.shapes import BODY, CHAT_TARGET, SECRET, exact, form, plain
from tests.rig import ROOT

SEPARATORS = [b"", b"\0", b",", b":", b"\n", b"a", b"1", (1).to_bytes(8, "big"), (0).to_bytes(8, "big"), b"\0" * 16]
blobs = st.lists(st.sampled_from(SEPARATORS), max_size=3).map(b"".join)
texts = blobs.map(lambda blob: blob.decode())
lines = st.lists(st.tuples(blobs, blobs), max_size=3).map(tuple)
parts = st.fixed_dictionaries({
    "realm": blobs, "owner": blobs, "namespace": texts, "knowledge": texts, "target": blobs, "fields": lines,
    "body": blobs,
})  # fmt: skip


@given(st.lists(parts, min_size=2, max_size=20))
def test_no_two_part_lists_share_a_key(asked):
    """B32: parts made of separators and lengths, in every arrangement."""
    keys: dict[bytes, dict] = {}
    for each in asked:
        assert keys.setdefault(exact(**each), each) == each


@given(blobs, blobs, st.data())
def test_moving_a_boundary_changes_the_key(one, other, data):
    """The same bytes, cut elsewhere, are other parts."""
    whole = one + other
    cut = data.draw(st.integers(0, len(whole)))
    assume(cut != len(one))
    for first, second in (("realm", "owner"), ("target", "body")):
        assert exact(**{first: one, second: other}) != exact(**{first: whole[:cut], second: whole[cut:]})
    assert exact(fields=((one, other),)) != exact(fields=((whole[:cut], whole[cut:]),))
    assert key.fingerprint(SECRET, [(one, other)]) != key.fingerprint(SECRET, [(whole[:cut], whole[cut:])])


@given(lines, lines)
def test_no_two_credentials_share_a_fingerprint(one, other):
    """B30: names, values and order count, and so does their number."""
    assume(one != other)
    assert key.fingerprint(SECRET, one) != key.fingerprint(SECRET, other)


def test_each_part_alone_changes_the_key():
    """B01, B06, B30: whose, where, what and which path with which query."""
    changes = [
        {}, {"realm": b"other"}, {"owner": b"d" * 16}, {"namespace": "n"}, {"knowledge": "n"}, {"body": b"{} "},
        {"target": b"/v1/completions"}, {"target": CHAT_TARGET + b"?api-version=1"}, {"fields": ((b"x", b"1"),)},
        {"target": CHAT_TARGET + b"?api-version=2"}, {"fields": ((b"x", b"1"), (b"x", b"1"))},
        {"fields": ((b"x1", b""),)},
    ]  # fmt: skip
    counted = Counter(exact(**change) for change in changes)
    assert max(counted.values()) == 1


@pytest.mark.parametrize("spelled", ["tenant:A", "A:x", "A\0x", "\0", "../A", "c" * 16, ("d" * 16) + "\0"])
def test_a_namespace_never_reaches_another_credential(spelled):
    """B32: whatever a namespace spells, the credential before it stays what it is."""
    theirs = {exact(owner=b"A" * 16, namespace=n) for n in ("", "x", "A", spelled)}
    assert exact(owner=b"B" * 16, namespace=spelled) not in theirs
    assert exact(owner=b"B" * 16, namespace=spelled) != exact(owner=b"B" * 16)


def test_the_secret_decides():
    """B84: without it nobody can compute a key or test a guess of a credential."""
    common = {
        "realm": b"",
        "owner": b"",
        "namespace": "",
        "knowledge": "",
        "target": b"",
        "fields": (),
        "body": b"",
    }
    assert key.exact(b"a" * 32, **common) != key.exact(b"b" * 32, **common)
    assert key.fingerprint(b"a" * 32, []) != key.fingerprint(b"b" * 32, [])


@pytest.mark.parametrize("size", [0, 1, 2 * 2**20])
def test_sizes_are_fixed(size):
    """B14: no part of a prompt is in a key, however long the prompt."""
    blob = b"SECRET-77" * (size // 9 + 1)
    made = exact(body=blob, fields=((b"x", blob),), namespace=blob.decode(), target=blob)
    assert len(made) == key.KEY_BYTES
    assert len(key.fingerprint(SECRET, [(b"authorization", blob)])) == key.FINGERPRINT_BYTES
    assert b"SECRET" not in made


def test_the_absent_credential_has_a_fingerprint_of_its_own():
    prints = {
        key.fingerprint(SECRET, lines)
        for lines in ([], [(b"", b"")], [(b"authorization", b"")], [(b"authorization", b"Bearer A")])
    }
    assert len(prints) == 4
    assert {len(p) for p in prints} == {key.FINGERPRINT_BYTES}


def test_an_entry_id_is_opaque():
    """It names an entry and gives no part of its key away."""
    one, other = exact(body=b"1"), exact(body=b"2")
    assert key.entry_id(one) == key.entry_id(bytes(one)) != key.entry_id(other)
    assert len(key.entry_id(one)) == 32
    assert key.entry_id(one) not in one.hex()
    assert one.hex()[:16] not in key.entry_id(one)


SCRIPT = """
import sys
from tests.core.shapes import exact, form
body = form(sys.stdin.buffer.read())
assert body is not None
print(exact(body=body, fields=((b"x-a", b"1"), (b"x-b", b"2"))).hex())
"""


def test_keys_are_the_same_in_every_process():
    """B04: nested schemas, floats, non-ASCII text, under different hash seeds."""
    tool = {"type": "function", "function": {"name": "f", "parameters": {"ä": {"z": 0.1, "a": [1e-7, "漢"]}, "b": {}}}}
    body = {**BODY, "temperature": 0.7, "tools": [tool], "x": {n: n for n in "qwertyuiop"}}
    found = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT], input=plain(body), capture_output=True, check=True, cwd=ROOT, timeout=60,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.strip().decode()
        for seed in ("0", "1", "4242")
    }  # fmt: skip
    assert found == {exact(body=form(body), fields=((b"x-a", b"1"), (b"x-b", b"2"))).hex()}
