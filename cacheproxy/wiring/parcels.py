"""What exports and imports, put together."""

from cacheproxy.core import parcel
from cacheproxy.core.parcel import Seal
from cacheproxy.engine.export import Export
from cacheproxy.engine.intake import Intake, Lifetimes
from cacheproxy.engine.shelf import Shelf
from cacheproxy.http.upstream import Upstream
from cacheproxy.wiring import terms
from cacheproxy.wiring.house import House, realm


def export(house: House) -> Export:
    """What exports the answers of `house`."""
    return Export(
        shelf=_shelf(house), census=house.store.census, meaning=house.meaning, clock=house.clock,
        seal=lambda: _seal(house),
    )  # fmt: skip


def intake(house: House) -> Intake:
    """What imports into `house`."""
    storage, told = house.storage, terms.keeping(house.settings)
    return Intake(
        shelf=_shelf(house), stock=house.store, removals=storage.removals, history=storage.epochs,
        knowledge=house.knowledge, meaning=house.meaning, clock=house.clock, seal=lambda: _seal(house),
        lifetimes=Lifetimes(told.max_ttl, told.keep_stale),
    )  # fmt: skip


def _shelf(house: House) -> Shelf:
    return Shelf(house.store, house.storage.removals, house.storage.epochs, house.clock)


def _seal(house: House) -> Seal:
    return parcel.seal(
        house.secret, realm(house.settings, [Upstream(u.url, u.weight) for u in house.settings.upstreams])
    )
