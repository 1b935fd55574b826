"""The choice among replicas: rendezvous, bounded load, and what is remembered."""

import hashlib
import math
import random

import pytest

from cacheproxy.core.affinity import Affinity, Route, Turns, least, rendezvous

NAMES = [f"http://gpu-{i}:8000" for i in range(5)]
EVEN = [1.0] * 5


def homes(count: int) -> list[bytes]:
    return [hashlib.blake2b(b"%d" % i, digest_size=16).digest() for i in range(count)]


def route(home: int, *chain: int, head: int = 0) -> Route:
    return Route(home.to_bytes(16, "big"), chain, head)


def settled(count: int = 5, **options) -> tuple[Affinity, "list[int]"]:
    """A chooser over so many replicas, and how they stand for home 1."""
    return Affinity(NAMES[:count], EVEN[:count], **options), rendezvous(route(1).home, NAMES[:count], EVEN[:count])


def give(affinity: Affinity, asked: Route, loads: list[float], able: list[int] | None = None) -> int:
    at = affinity.choose(asked, loads, range(len(loads)) if able is None else able)
    affinity.remember(asked, at)
    return at


# --- rendezvous --------------------------------------------------------------------------------------------------


def test_a_replica_that_goes_moves_only_its_own_families():
    """Whichever of five goes: the order of the others is the same, for every family; so it is when one comes."""
    for home in homes(500):
        order = [NAMES[i] for i in rendezvous(home, NAMES, EVEN)]
        for gone in range(5):
            rest = NAMES[:gone] + NAMES[gone + 1 :]
            assert [rest[i] for i in rendezvous(home, rest, EVEN[1:])] == [n for n in order if n != NAMES[gone]]


def test_the_order_in_which_replicas_are_configured_does_not_matter():
    turned = NAMES[::-1]
    for home in homes(200):
        assert [NAMES[i] for i in rendezvous(home, NAMES, EVEN)] == [turned[i] for i in rendezvous(home, turned, EVEN)]


def test_families_are_shared_out_by_weight():
    firsts = [rendezvous(home, NAMES[:3], [1, 1, 2])[0] for home in homes(4000)]
    assert [abs(firsts.count(i) / 4000 - share) < 0.03 for i, share in enumerate((0.25, 0.25, 0.5))] == [True] * 3


def test_more_weight_moves_families_only_to_whom_it_is_given():
    for home in homes(500):
        before, after = rendezvous(home, NAMES, EVEN)[0], rendezvous(home, NAMES, [1, 1, 3, 1, 1])[0]
        assert after in (before, 2)


def test_the_order_is_the_same_in_every_process_and_release():
    """Proxies that run side by side agree, the older and the newer too."""
    assert [rendezvous(home, NAMES, EVEN) for home in homes(3)] == [
        [2, 1, 3, 4, 0], [1, 0, 4, 3, 2], [3, 1, 2, 4, 0],
    ]  # fmt: skip


# --- turns and the least loaded ----------------------------------------------------------------------------------


def test_turns_are_smooth_and_by_weight():
    turns = Turns([5, 1, 1])
    assert [turns.next([0, 1, 2]) for _ in range(14)] == [0, 0, 1, 0, 2, 0, 0] * 2
    assert [turns.next([2]) for _ in range(3)] == [2, 2, 2]
    assert [turns.next([0, 1, 2]) for _ in range(7)] == [0, 0, 1, 0, 2, 0, 0]


def test_least_is_by_weight():
    assert least([4, 1, 2], [4, 1, 1], [0, 1, 2]) == [0, 1]
    assert least([4, 1, 2], [4, 1, 1], [2]) == [2]


# --- the choice --------------------------------------------------------------------------------------------------


def test_what_is_new_begins_at_home():
    for number, home in enumerate(homes(200)):
        affinity = Affinity(NAMES, EVEN)
        assert affinity.choose(Route(home, (number, 7)), [0] * 5, range(5)) == rendezvous(home, NAMES, EVEN)[0]


def test_a_conversation_stays_where_its_history_was_read():
    """Be it with the last of all in the order of its family."""
    affinity, order = settled()
    affinity.remember(route(1, 10, 11, 12), order[-1])
    assert affinity.choose(route(1, 10, 11, 12, 13), [0] * 5, range(5)) == order[-1]
    assert affinity.choose(route(1, 10, 99), [0] * 5, range(5)) == order[-1]
    assert affinity.choose(route(1, 98, 99), [0] * 5, range(5)) == order[0]


def test_the_longest_history_wins():
    affinity, order = settled()
    affinity.remember(route(1, 10, 11), order[1])
    affinity.remember(route(1, 10, 11, 12), order[3])
    affinity.remember(route(1, 10), order[2])
    assert affinity.choose(route(1, 10, 11, 12, 13), [0] * 5, range(5)) == order[3]


def test_of_equals_the_less_loaded_then_the_preferred():
    affinity, order = settled(3)
    for at in order:
        affinity.remember(route(1, 10, 11), at)
    loads = [0.0] * 3
    assert affinity.choose(route(1, 10, 11), loads, range(3)) == order[0]
    loads[order[0]] = 1
    assert affinity.choose(route(1, 10, 11), loads, range(3)) == order[1]
    assert affinity.choose(route(1, 10, 11), loads, [order[2], order[0]]) == order[2]


def test_a_replica_that_is_not_able_is_not_chosen_whatever_it_knows():
    affinity, order = settled()
    affinity.remember(route(1, 10, 11), order[0])
    able = [i for i in range(5) if i != order[0]]
    assert affinity.choose(route(1, 10, 11), [0] * 5, able) == order[1]
    assert affinity.choose(route(1, 10, 11), [0] * 5, [order[4]]) == order[4]


def test_a_hot_prefix_spills_to_the_next_and_then_both_share_it():
    """Of four replicas none takes more than its share and a quarter of what is known of a head alone."""
    affinity, order = settled(4)
    loads, went = [0.0] * 4, []
    for user in range(40):
        at = give(affinity, route(1, 10, 11, 1000 + user, head=2), loads)
        assert loads[at] < math.ceil(1.25 * (sum(loads) + 1) / 4)
        loads[at] += 1
        went.append(at)
    first = list(dict.fromkeys(went))
    assert first == order
    assert max(loads) <= 13


@pytest.mark.parametrize("bound", [1.0, 1.25, 2.0])
def test_no_replica_is_ever_given_more_than_its_bound(bound):
    """Whatever came before, whatever is known: and there is always one with room."""
    dice = random.Random(1)
    weights = [1.0, 2.0, 0.5, 1.0]
    affinity = Affinity(NAMES[:4], weights, bound=bound, most=200)
    for _ in range(5000):
        loads = [dice.randrange(12) for _ in range(4)]
        able = dice.sample(range(4), dice.randint(1, 4))
        head = dice.randint(0, 2)
        chain = [dice.randrange(3)]
        for _ in range(dice.randint(0, 5)):
            chain.append(chain[-1] * 3 + dice.randrange(2) + 3)
        asked = route(dice.randrange(3), *chain, head=min(head, len(chain)))
        at = give(affinity, asked, loads, able)
        assert at in able
        if len(able) > 1:
            part = bound * weights[at] / sum(weights[i] for i in able)
            history = 1 - asked.head / len(chain)
            widest = part * (1 + history * max(0.0, 1 - part))
            assert loads[at] < math.ceil(widest * (sum(loads[i] for i in able) + 1))
        if dice.random() < 0.01:
            affinity.forget(dice.randrange(4))


def test_of_those_that_know_the_head_as_well_as_home_the_less_loaded_begins():
    affinity, order = settled(4)
    for at in (order[0], order[2]):
        affinity.remember(route(1, 10, 11, head=2), at)
    loads = [3.0] * 4
    loads[order[0]], loads[order[2]] = 1, 0
    assert affinity.choose(route(1, 10, 11, 99, head=2), loads, range(4)) == order[2]
    loads[order[2]] = 1
    assert affinity.choose(route(1, 10, 11, 99, head=2), loads, range(4)) == order[0]


def test_a_home_that_knows_less_takes_it_also_when_it_carries_more():
    """As long as it has room; without, whoever knows the head is better than who comes next."""
    affinity, order = settled(4)
    affinity.remember(route(1, 10, 11, head=2), order[3])
    loads = [0.0] * 4
    loads[order[0]] = 1
    loads[order[1]] = loads[order[2]] = 2
    assert affinity.choose(route(1, 10, 11, 99, head=2), loads, range(4)) == order[0]
    loads[order[0]] = 5
    loads[order[1]] = loads[order[2]] = 0
    assert affinity.choose(route(1, 10, 11, 99, head=2), loads, range(4)) == order[3]
    assert affinity.choose(route(1, 77, 78, 99, head=2), loads, range(4)) == order[1]


def test_history_is_worth_some_load_and_a_head_is_not():
    """At the same load of its replica: a conversation stays, a new one of the same family goes elsewhere. Where that
    replica has nearly all there is to do, the conversation goes as well."""
    affinity, order = settled(2)
    affinity.remember(route(1, 10, *range(20, 40), head=1), order[1])
    affinity.remember(route(1, 10, head=1), order[0])
    loads = [0.0, 0.0]
    loads[order[1]], loads[order[0]] = 4, 1
    assert affinity.choose(route(1, 10, *range(20, 42), head=1), loads, range(2)) == order[1]
    assert affinity.choose(route(1, 10, 99, head=1), loads, range(2)) == order[0]
    loads[order[1]], loads[order[0]] = 10, 0
    assert affinity.choose(route(1, 10, *range(20, 42), head=1), loads, range(2)) == order[0]


def test_a_wide_bound_never_spills():
    affinity, order = settled(4, bound=100)
    loads = [0.0] * 4
    for user in range(50):
        at = give(affinity, route(1, 10, user + 100, head=1), loads)
        loads[at] += 1
    assert loads[order[0]] == 50


# --- away and back -----------------------------------------------------------------------------------------------


def test_families_come_back_to_a_replica_that_was_away_and_conversations_stay():
    """What it had cached is not counted on any more; nor does what the others learned meanwhile keep its families."""
    affinity, order = settled(3)
    away, other = order[0], order[1]
    idle = [0.0] * 3
    assert give(affinity, route(1, 10, 11, 100, head=2), idle) == away
    affinity.forget(away)
    rest = [i for i in range(3) if i != away]
    for user in range(5):
        assert give(affinity, route(1, 10, 11, 200 + user, head=2), idle, rest) == other
    assert give(affinity, route(1, 10, 11, 200, 201, head=2), idle) == other, "its history is there"
    assert affinity.choose(route(1, 10, 11, 100, 101, head=2), idle, range(3)) == away, "back to its home"
    assert give(affinity, route(1, 10, 11, 300, head=2), idle) == away, "a new one begins at home"
    assert give(affinity, route(1, 10, 11, 301, head=2), idle) == away, "and so does the next"


def test_what_a_replica_learned_is_forgotten_with_it_and_nothing_else():
    affinity, order = settled(3)
    affinity.remember(route(1, 10, 11, 12), order[2])
    affinity.remember(route(1, 10, 11), order[1])
    affinity.forget(order[2])
    assert affinity.choose(route(1, 10, 11, 12), [0] * 3, range(3)) == order[1]
    affinity.forget(order[1])
    assert affinity.choose(route(1, 10, 11, 12), [0] * 3, range(3)) == order[0]
    affinity.remember(route(1, 10, 11, 12), order[2])
    assert affinity.choose(route(1, 10, 11, 12), [0] * 3, range(3)) == order[2], "it can learn again"


def test_memory_is_bounded_and_forgets_the_ends_of_the_oldest_first():
    affinity, order = settled(most=100)
    affinity.remember(route(1, *range(10)), order[4])
    for number in range(1, 1000):
        affinity.remember(route(1, *range(number * 1000, number * 1000 + 9)), order[3])
        assert len(affinity) <= 100
    assert len(affinity) == 100
    affinity = Affinity(NAMES, EVEN, most=12)
    affinity.remember(route(1, *range(10)), order[4])
    affinity.remember(route(1, 100, 101, 102, 103, 104), order[3])
    assert affinity.choose(route(1, 0, 1, 2, 99), [0] * 5, range(5)) == order[4], "its beginning is still known"
    affinity.remember(route(1, 200, 201, 202, 203, 204, 205, 206), order[3])
    assert affinity.choose(route(1, *range(10)), [0] * 5, range(5)) == order[0], "nothing of it is"


def test_what_is_asked_for_again_is_kept():
    affinity, order = settled(most=12)
    for others in range(2):
        affinity.remember(route(1, 1, 2, 3), order[4])
        affinity.remember(route(1, *range(others * 10 + 10, others * 10 + 18)), order[3])
    assert affinity.choose(route(1, 1, 2, 3), [0] * 5, range(5)) == order[4]


def test_it_tells_how_much_it_holds():
    affinity, order = settled(most=50)
    affinity.remember(route(1, 1, 2, 3), order[0])
    assert repr(affinity) == "<Affinity 5 replicas, 3 of 50 elements>"
