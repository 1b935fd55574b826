"""The laws of the gate's queues, one by one, in made-up time."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.queues import ClassTerms, Level, Queues, Refusal, Terms, Waiter
from tests.examples import tries

AGE, BOUND = (10.0, 30.0), (50.0, 300.0)
TERMS = Terms(
    (
        ClassTerms(20, None, 16), ClassTerms(100, None, 4, AGE[0], BOUND[0]),
        ClassTerms(None, 1000, 1, AGE[1], BOUND[1]),
    )
)  # fmt: skip


def waiter(
    priority: int = 1, tenant: bytes = b"a", since: float = 0.0, size: int = 1, group: int = 0, **more
) -> Waiter:
    return Waiter(priority, tenant, group, size, since, **more)


def let_in(queues: Queues, *waiters: Waiter) -> None:
    for one in waiters:
        assert queues.offer(one, Level.NORMAL) is None


def take(queues: Queues, now: float = 0.0, slots: int = 1, shut=()) -> Waiter | None:
    found = queues.next(now, slots, shut)
    if found is not None:
        queues.grant(found, now)
    return found


def drain(queues: Queues, now: float = 0.0, slots: int = 1) -> list[Waiter]:
    found = []
    while (one := take(queues, now, slots)) is not None:
        found.append(one)
    return found


def test_the_urgent_go_first_when_slots_are_scarce():
    queues = Queues(TERMS)
    let_in(queues, waiter(2), waiter(1), waiter(0), waiter(2), waiter(0))
    assert [one.priority for one in drain(queues)] == [0, 0, 1, 2, 2]


def test_in_plenty_the_classes_share_by_weight():
    queues = Queues(TERMS)
    let_in(queues, *(waiter(priority, since=number) for number in range(20) for priority in (0, 1, 2)))
    got = [take(queues, slots=1000).priority for _ in range(21)]
    assert (got.count(0), got.count(1), got.count(2)) == (16, 4, 1)


def test_a_class_that_was_away_gains_nothing_by_it():
    queues = Queues(TERMS)
    let_in(queues, *(waiter(0, since=n) for n in range(20)))
    for _ in range(10):
        take(queues, slots=1000)
    let_in(queues, *(waiter(1, since=n) for n in range(20)))
    got = [take(queues, slots=1000).priority for _ in range(10)]
    assert got.count(1) <= 3


def test_callers_take_turns_whoever_has_more():
    queues = Queues(TERMS)
    let_in(queues, *(waiter(tenant=b"flood", since=n) for n in range(50)))
    let_in(queues, *(waiter(tenant=b"few", since=100 + n) for n in range(5)))
    order = [one.tenant for one in drain(queues)]
    assert order[:10].count(b"few") == 5
    assert order[10:] == [b"flood"] * 45


def test_who_comes_again_and_again_is_not_ahead_of_who_waits():
    """A new caller begins at the present: many new ones, one after the other, do not starve an old one."""
    queues = Queues(TERMS)
    let_in(queues, *(waiter(tenant=b"old", since=n) for n in range(3)))
    served = []
    for number in range(30):
        let_in(queues, waiter(tenant=b"new%d" % number, since=100 + number))
        served.append(take(queues).tenant)
    assert served.count(b"old") == 3


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 8)), min_size=1, max_size=12))
@tries(100)
def test_while_two_callers_wait_neither_gets_two_more_than_the_other(crowd):
    queues = Queues(Terms(tuple(ClassTerms(None, None, 1) for _ in range(3))))
    left: dict[bytes, int] = {}
    for tenant, count in crowd:
        let_in(queues, *(waiter(tenant=b"%d" % tenant, since=n) for n in range(count)))
        left[b"%d" % tenant] = left.get(b"%d" % tenant, 0) + count
    got = dict.fromkeys(left, 0)
    while (one := take(queues)) is not None:
        got[one.tenant] += 1
        left[one.tenant] -= 1
        busy = [got[tenant] for tenant in left if left[tenant]]
        assert not busy or max(busy) - min(busy) <= 1


@pytest.mark.parametrize("priority", [1, 2])
@given(data=st.data())
@tries(40)
def test_the_ageing_bound(priority, data):
    """P0 takes all there is. Whoever of a lower class has waited for its bound is given one slot of `share`, so that
    the n-th of its class has one after at most `share` times n slots."""
    queues = Queues(TERMS)
    crowd = data.draw(st.integers(1, 5))
    let_in(queues, *(waiter(priority, tenant=b"%d" % (n % 2), since=0.0) for n in range(crowd)))
    now, served, grants = 0.0, [], 0
    while len(served) < crowd:
        while queues.waiting(0) < 20:
            let_in(queues, waiter(0, since=now))
        now += data.draw(st.sampled_from((0.1, 1.0)))
        one = take(queues, now)
        if now >= BOUND[priority - 1]:
            grants += 1
        if one.priority:
            assert now >= BOUND[priority - 1]  # not before: P0's queue is long
            served.append(one)
        assert grants <= TERMS.share * (len(served) + 1)


def test_the_aged_go_earlier_while_the_queue_of_p0_is_short():
    queues = Queues(TERMS)
    let_in(queues, waiter(1, since=0.0))
    turns = []
    for number in range(60):
        let_in(queues, waiter(0, since=float(number)))
        turns.append(take(queues, AGE[0] + number).priority)
        if 1 in turns:
            break
    assert turns.index(1) == TERMS.share - 1


def test_a_full_class_refuses_who_has_as_much_in_it_as_the_others():
    queues = Queues(TERMS)
    let_in(queues, *(waiter(0, tenant=b"ab"[n % 2 :][:1], since=n) for n in range(20)))
    assert queues.offer(waiter(0, tenant=b"a", since=99), Level.NORMAL) is Refusal.FULL


def test_a_full_class_lets_a_caller_in_who_has_less_and_drops_the_newest_of_the_greedy():
    queues = Queues(TERMS)
    flood = [waiter(0, tenant=b"flood", since=n) for n in range(20)]
    let_in(queues, *flood)
    assert queues.offer(waiter(0, tenant=b"few", since=99), Level.NORMAL) is flood[-1]
    assert queues.waiting(0) == 20


def test_a_class_is_bounded_in_bytes_and_takes_a_single_large_one():
    queues = Queues(TERMS)
    let_in(queues, waiter(2, size=5000))
    assert queues.offer(waiter(2, size=1), Level.NORMAL) is Refusal.FULL
    assert take(queues) is not None
    let_in(queues, waiter(2, size=600), waiter(2, size=400))
    assert queues.offer(waiter(2, size=1), Level.NORMAL) is Refusal.FULL
    assert queues.held(2) == 1000


def test_less_is_let_in_at_each_level():
    let = {level: [] for level in Level}
    for level in Level:
        for priority in range(3):
            queues = Queues(TERMS)
            if queues.offer(waiter(priority), level) is None:
                let[level].append(priority)
            favoured = waiter(priority, favoured=True)
            assert queues.offer(favoured, level) is None
    assert let == {Level.NORMAL: [0, 1, 2], Level.NO_NEW_P2: [0, 1], Level.PAUSE_P1: [0]}


def test_who_was_told_when_to_come_goes_where_it_was():
    queues = Queues(TERMS)
    let_in(queues, waiter(since=5.0), waiter(since=6.0), waiter(since=1.0, favoured=True))
    assert [one.since for one in drain(queues)] == [1.0, 5.0, 6.0]


def test_one_that_is_urged_goes_on_in_the_other_class():
    queues = Queues(TERMS)
    late = waiter(2, since=3.0)
    let_in(queues, waiter(0, since=1.0), late, waiter(0, since=5.0, tenant=b"b"))
    queues.urge(late, 0)
    assert queues.waiting(2) == 0
    assert next(one.since for one in drain(queues)) in (1.0, 3.0)
    queues.urge(late, 0)  # it is gone
    assert len(queues) == 0


def test_who_has_no_room_does_not_hold_up_the_others():
    queues = Queues(TERMS)
    let_in(queues, waiter(0, group=0), waiter(1, group=1))
    assert take(queues, shut={0}).group == 1
    assert take(queues, shut={0}) is None


def test_the_place_of_one_that_waits():
    queues = Queues(TERMS)
    mine = waiter(1, since=3.0)
    let_in(queues, waiter(0, since=1.0), waiter(1, since=2.0, tenant=b"b"), mine, waiter(2, since=0.0))
    assert queues.place(mine) == 2
    assert queues.oldest(1) == 2.0
    assert Queues(TERMS).oldest(0) == math.inf
