"""Removals are heard of as they are called out, and learnt of later if they were not heard."""

import time

import pytest

from cacheproxy.core.removal import Order, Removal, Removals, Selector
from cacheproxy.stores import redis_listener
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_epochs import RedisEpochs
from cacheproxy.stores.redis_keys import Keys
from cacheproxy.stores.redis_listener import Listener
from cacheproxy.wiring.house import SystemClock
from tests.rig import until

pytestmark = pytest.mark.redis

TAGGED = Selector(tags=frozenset({"faq"}))


class Replica:
    def __init__(self, link) -> None:
        self.removals = Removals()
        keys = Keys("cacheproxy", link.shards)
        self.epochs = RedisEpochs(
            Calls(link), keys, self.removals, SystemClock(), secret=b"s" * 32, agreed=lambda secret: None
        )
        self.listener = Listener(link, keys, self.epochs)

    async def close(self) -> None:
        await self.listener.close()
        await self.epochs.close()


@pytest.fixture
async def replica_at(link_to):
    made: list[Replica] = []

    def make(url: str) -> Replica:
        made.append(Replica(link_to(url)))
        return made[-1]

    yield make
    for replica in made:
        await replica.close()


async def test_a_removal_by_another_is_heard_of_without_a_lookup(replica_at, redis):
    ours, theirs = replica_at(redis.url), replica_at(redis.url)
    ours.listener.start()
    await until(lambda: ours.listener.listening, what="the subscription")
    known = ours.removals.epoch
    await theirs.epochs.begin(Order(TAGGED, Removal.HARD), time.time())
    await until(lambda: ours.removals.epoch == known + 1, what="the message")


async def test_what_was_called_out_while_the_connection_was_down_is_learnt_when_it_is_back(
    replica_at, redis, relay_to, monkeypatch
):
    """B37: a lost message delays, it loses nothing."""
    monkeypatch.setattr(redis_listener, "PAUSE", 0.02)
    relay = relay_to(redis.address)
    ours, theirs = replica_at(relay.url), replica_at(redis.url)
    ours.listener.start()
    await until(lambda: ours.listener.listening, what="the subscription")
    known = ours.removals.epoch
    relay.refuse()
    relay.reset()
    await until(lambda: not ours.listener.listening, what="the end of the connection")
    await theirs.epochs.begin(Order(TAGGED, Removal.HARD), time.time())
    assert ours.removals.epoch == known
    relay.accept()
    await until(lambda: ours.removals.epoch == known + 1, what="the removal")


async def test_a_fault_of_ours_does_not_end_the_listening_for_ever(replica_at, redis, monkeypatch, caplog):
    """Copies near by would be served to their full age from then on."""
    monkeypatch.setattr(redis_listener, "PAUSE", 0.01)
    ours, theirs = replica_at(redis.url), replica_at(redis.url)
    learn, failed = ours.epochs.current, 0

    async def current() -> None:
        nonlocal failed
        if failed < 3:
            failed += 1
            raise LookupError("SECRET-77")
        await learn()

    monkeypatch.setattr(ours.epochs, "current", current)
    ours.listener.start()
    await until(lambda: ours.listener.listening, what="the subscription")
    known = ours.removals.epoch
    await theirs.epochs.begin(Order(TAGGED, Removal.HARD), time.time())
    await until(lambda: ours.removals.epoch == known + 1, what="the message")
    assert failed == 3
    [line] = [record.getMessage() for record in caplog.records if "listening" in record.getMessage()]
    assert line.endswith(" > LookupError")


async def test_closing_ends_the_connection(replica_at, redis, relay_to):
    relay = relay_to(redis.address)
    ours = replica_at(relay.url)
    ours.listener.start()
    await until(lambda: ours.listener.listening, what="the subscription")
    listening = relay.open
    await ours.listener.close()
    await until(lambda: relay.open < listening, what="the end of the connection")
    await Replica.close(ours)


async def test_one_that_was_never_started_closes(replica_at, redis):
    await replica_at(redis.url).listener.close()
