"""Public traces through the router: with four replicas nearly all is found that one endless cache would find."""

import hashlib
import re

import pytest

from cacheproxy.core.affinity import Policy
from tests.bench import affinity as bench


@pytest.mark.parametrize("name", bench.NAMES)
def test_four_replicas_find_what_one_endless_cache_finds(name):
    """At least nine tenths of it by affinity, and not by taking turns; no replica is left out or run over for that."""
    requests = bench.trace(name)
    best = bench.endless(requests)
    found = {
        policy: bench.replay(requests, bench.chooser(policy, 4), 4) for policy in (Policy.AFFINITY, Policy.ROUND_ROBIN)
    }
    for policy, result in found.items():
        print(f"{name}, 4 replicas, {policy}: {result.share:.1%}, {result.share / best:.1%} of one endless cache")
    assert found[Policy.AFFINITY].share >= 0.9 * best
    assert found[Policy.ROUND_ROBIN].share <= 0.7 * best
    assert found[Policy.AFFINITY].uneven <= 1.5


@pytest.mark.parametrize("name", bench.NAMES)
def test_replicas_that_forget_find_more_by_affinity(name):
    """With caches of 4,000 blocks each, more than twice as much."""
    requests = bench.trace(name)
    shares = [
        bench.replay(requests, bench.chooser(policy, 4), 4, 4000).share
        for policy in (Policy.AFFINITY, Policy.ROUND_ROBIN)
    ]
    assert shares[0] >= 2 * shares[1]


def test_traces_are_those_that_the_page_beside_them_describes():
    page = (bench.TRACES / "README.md").read_text()
    told = dict(reversed(line.split("  ")) for line in re.findall(r"^[0-9a-f]{64}  \S+$", page, re.MULTILINE))
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in bench.TRACES.glob("*.gz")}
    assert told == files
    assert [len(bench.trace(name)) for name in bench.NAMES] == [12_031, 3_993]


def test_a_cache_finds_only_what_it_read():
    """The measure itself: a beginning counts as far as it is there without a gap, and what is dropped is gone."""
    cache = bench.Cache(3)
    assert [cache.read(chain) for chain in ([1, 2, 3], [1, 2, 4], [9, 8], [1, 2, 4])] == [0, 2, 0, 1]
    endless = bench.Cache(None)
    assert [endless.read(chain) for chain in ([1, 2, 3], [1, 2, 4], [9, 8], [1, 2, 4])] == [0, 2, 0, 3]
