"""Requests that are kept and asked later, put together."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cacheproxy.core.deferral import Bounds
from cacheproxy.core.removal import Selector
from cacheproxy.core.rules import Settled
from cacheproxy.engine.authority import Authority
from cacheproxy.engine.deferral import Deferrals, Taking, Vault
from cacheproxy.engine.deferring import Deferring, Terms
from cacheproxy.http.deferral import Front
from cacheproxy.schema import Settings
from cacheproxy.stores.deferral_file import FileDeferrals
from cacheproxy.stores.deferral_memory import MemoryDeferrals
from cacheproxy.stores.sealing import Sealing

if TYPE_CHECKING:
    from cacheproxy.wiring.house import House

FILE = "deferred.sqlite3"
_NOTHING = Selector(entry_ids=frozenset({"0" * 32}))


@dataclass(frozen=True, slots=True)
class Deferral:
    """`front`: what the proxy listener asks in place of the pipeline; `deferring`: asks what was kept."""

    front: Front
    vault: Vault
    taking: Taking
    deferring: Deferring

    def start(self) -> None:
        """Look for those that are due, from now on."""
        self.deferring.start()

    async def drain(self) -> None:
        """Give back what is being asked. New ones are kept as long as they outlive the process."""
        self.taking.draining = True
        await self.deferring.drain()

    async def close(self) -> None:
        await self.drain()
        await self.vault.store.close()


def deferral(house: "House") -> Deferral:
    """What keeps requests for `house`, and asks them."""
    settings, engine = house.settings, house.engine
    told = settings.jobs
    bounds = Bounds(told.max_deferred_bytes, told.max_deferred_per_key, told.max_age, told.ttl)
    vault = Vault(_store(house), Sealing(lambda: house.secret), bounds)
    door = house.door
    deferring = Deferring(
        answer=engine.pipeline.answer, vault=vault, calm=lambda: door is None or door.admission.calm,
        written=partial(_written, house), clock=house.clock, journal=house.telemetry,
        terms=Terms(
            told.deferred_concurrency, told.attempts, told.pause, told.lease, settings.limits.answer_bytes
        ),
    )  # fmt: skip
    by_rule = any(row.set.defer for row in settings.rules)
    taking = Taking(
        vault=vault, binder=engine.binder, journal=house.telemetry, by_rule=_by_rule if by_rule else None,
        taken=deferring.nudge,
    )  # fmt: skip
    access = settings.access
    authority = Authority(house.backends.probe, house.clock, access.grant_ttl, access.grace)
    front = Front(
        pipeline=engine.pipeline, taking=taking, vault=vault, binder=engine.binder, authority=authority,
        past=house.storage.epochs.past, path=told.path,
    )  # fmt: skip
    return Deferral(front, vault, taking, deferring)


async def _written(house: "House") -> None:
    """What is counted in the cache file is counted when all that was put before has been written."""
    if house.storage.shared is None and house.settings.store.data_dir != "none":
        await house.store.count(_NOTHING, house.clock.now())


def _by_rule(settled: Settled) -> bool:
    return settled.defer is True


def _store(house: "House") -> Deferrals:
    shared, data_dir = house.storage.shared, house.settings.store.data_dir
    if shared is not None:
        from cacheproxy.stores.deferral_redis import RedisDeferrals  # only who shares pays for the client
        from cacheproxy.stores.redis_calls import Calls
        from cacheproxy.stores.redis_keys import Keys

        return RedisDeferrals(Calls(shared.link), Keys(house.settings.redis.prefix, shared.link.shards))
    if data_dir == "none":
        return MemoryDeferrals(house.clock)
    return FileDeferrals(Path(data_dir) / FILE, house.clock)


def admin_url(settings: Settings, bound: str) -> str:
    """The URL of the admin listener, bound at `bound`, as a caller may use it; empty if that is not known."""
    return "" if settings.admin.host in ("0.0.0.0", "::", "") else bound  # noqa: S104 - it is what is not told
