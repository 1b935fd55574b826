"""What the admin listener serves from, put together."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cacheproxy.engine.catalogue import Catalogue
from cacheproxy.engine.lookup import Lookup
from cacheproxy.engine.neighbours import Neighbours
from cacheproxy.engine.shelf import Shelf
from cacheproxy.http.admin import Desk
from cacheproxy.http.audit import Audit
from cacheproxy.http.tokens import File, Given, Source, Tokens
from cacheproxy.schema import Settings
from cacheproxy.stores.lines import Lines
from cacheproxy.wiring import parcels, terms
from cacheproxy.wiring.house import House
from cacheproxy.wiring.jobs import errands, replays


def desk(house: House, config: dict[str, Any], drain: Callable[[], None]) -> Desk:
    """The desk of `house`. `config`: the redacted configuration. Raises `ConfigurationError`."""
    told = house.settings.admin
    lines = Lines(Path(told.audit_file), told.audit_bytes) if told.audit_file is not None else None

    async def close() -> None:
        if lines is not None:
            await lines.close()

    return Desk(
        book=house.telemetry, config=config, ready=lambda: not house.proxy.draining, drain=drain, purge=house.purge,
        knowledge=house.knowledge, feedback=house.feedback, families=house.engine.families,
        backends=house.backends,
        catalogue=Catalogue(_shelf(house), house.clock), lookup=_lookup(house), clock=house.clock,
        jobs=house.jobs, deferred=house.deferral.vault, errands=errands(house), replay=replays(house),
        export=parcels.export(house), intake=parcels.intake(house), answer_bytes=house.settings.limits.answer_bytes,
        tokens=tokens(house.settings), audit=Audit(lines.write if lines is not None else None),
        texts=told.show_answers, body_bytes=house.settings.limits.body_bytes, close=close,
    )  # fmt: skip


def tokens(settings: Settings) -> Tokens:
    """The tokens that the settings name. Raises `ConfigurationError`."""
    told = settings.admin

    def sources(name: str) -> list[Source]:
        given, file = getattr(told, name), getattr(told, f"{name}_file")
        found: list[Source] = [Given(given.get_secret_value())] if given is not None else []
        return [*found, File(Path(file), f"admin.{name}_file")] if file is not None else found

    return Tokens(sources("token"), sources("read_token"))


def _shelf(house: House) -> Shelf:
    return Shelf(house.store, house.storage.removals, house.storage.epochs, house.clock)


def _lookup(house: House) -> Lookup:
    engine = house.engine
    shelf = _shelf(house)
    neighbours = None
    if house.meaning is not None and engine.semantic is not None:
        neighbours = Neighbours(
            binder=engine.binder, semantic=engine.semantic, meaning=house.meaning,
            matching=terms.matching(house.settings), shelf=shelf, feedback=house.feedback,
            promotion=house.trust.promotion if house.trust is not None else None, clock=house.clock,
        )  # fmt: skip
    return Lookup(
        binder=engine.binder, shelf=shelf, neighbours=neighbours, clock=house.clock,
        allowance=terms.lasting(house.settings).allowance,
    )  # fmt: skip
