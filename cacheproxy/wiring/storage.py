"""The embedded store, and the secret that its keys are made with."""

import logging
import os
import secrets
from pathlib import Path

from cacheproxy.core import key
from cacheproxy.engine.guard import GuardedStore
from cacheproxy.errors import Trouble
from cacheproxy.ports import Clock, Stocked
from cacheproxy.schema import Settings
from cacheproxy.stores.memory import Memory
from cacheproxy.stores.sqlite import Sqlite
from cacheproxy.stores.tiered import Tiered
from cacheproxy.telemetry import Telemetry

log = logging.getLogger("cacheproxy")

CACHE_FILE = "cache.sqlite3"
SECRET_FILE = "secret"  # noqa: S105 - a file name


def open_store(settings: Settings, clock: Clock, telemetry: Telemetry) -> tuple[Stocked, bytes]:
    """The embedded store, and the secret that its keys are made with."""
    memory = Memory(settings.store.memory_bytes)
    disk: Sqlite | None = None
    telemetry.gauge("store_dropped", "Answers put and not written to the disk.", lambda: disk.dropped if disk else 0)
    if settings.store.data_dir == "none":
        return memory, secrets.token_bytes(key.SECRET_BYTES)
    directory = Path(settings.store.data_dir)
    try:
        disk = Sqlite(directory / CACHE_FILE, settings.store.disk_bytes)
        secret = _secret(directory / SECRET_FILE)
    except (Trouble, OSError) as error:
        log.warning("answers are kept in memory only: %s", error)
        return memory, secrets.token_bytes(key.SECRET_BYTES)
    return Tiered(memory, GuardedStore(disk, "cache file", settings.store.deadline, clock, telemetry)), secret


def _secret(path: Path) -> bytes:
    """The secret of a data directory, made on first use, for the owner's eyes only."""
    if path.exists():
        known = path.read_bytes()
        if len(known) == key.SECRET_BYTES:
            return known
        log.warning("%s is damaged; a new secret is made, what is stored under the old one will not be found", path)
        path.unlink()
    part = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(key.SECRET_BYTES))
    try:
        path.hardlink_to(part)  # never over the secret of another process that was first
    except FileExistsError:
        log.debug("another process made the secret of %s", path.parent)
    finally:
        part.unlink()
    return path.read_bytes()
