"""The store, the removals that all who share it know, and the secret that its keys are made with."""

import hashlib
import logging
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cacheproxy.core import key
from cacheproxy.core.removal import Removals
from cacheproxy.engine.guard import GuardedStore
from cacheproxy.engine.shelf import Alone
from cacheproxy.errors import ConfigurationError, Trouble
from cacheproxy.ports import Clock, Epochs, Registry, Stocked
from cacheproxy.schema import Settings
from cacheproxy.stores.memory import Memory
from cacheproxy.stores.registry import FileRegistry
from cacheproxy.stores.sqlite import Sqlite
from cacheproxy.stores.tiered import Tiered
from cacheproxy.telemetry import Telemetry

if TYPE_CHECKING:
    from cacheproxy.wiring.shared import Shared

log = logging.getLogger("cacheproxy")

CACHE_FILE = "cache.sqlite3"
VERSIONS_FILE = "knowledge.jsonl"
SECRET_FILE = "secret"  # noqa: S105 - a file name
LEAST_SECRET = 32
"""Characters that a secret must have."""


@dataclass(frozen=True, slots=True)
class Storage:
    """`shared`: the parts of a store that other replicas share; None for one of this proxy alone."""

    store: Stocked
    removals: Removals
    epochs: Epochs
    secret: bytes
    registry: Registry
    shared: "Shared | None" = None


def open_storage(settings: Settings, clock: Clock, telemetry: Telemetry, agreed: Callable[[bytes], None]) -> Storage:
    """The storage that the settings ask for. `agreed` is told of another secret that all replicas use. Raises
    `ConfigurationError`."""
    removals = Removals()
    given = given_secret(settings)
    if settings.redis.url is not None:
        from cacheproxy.wiring.shared import Shared  # only who shares pays for the client

        proposed = secrets.token_bytes(key.SECRET_BYTES)
        shared = Shared(settings, removals, clock, telemetry, b"" if given else proposed, agreed)
        return Storage(shared.store, removals, shared.epochs, given or proposed, shared.registry, shared)
    store, own, disk = _embedded(settings, telemetry)
    if disk is not None:
        removals.resume(*disk.record)
    epochs = Alone(removals, disk.past if disk is not None else None, clock.now())
    return Storage(store, removals, epochs, given or own, _registry(settings))


def _registry(settings: Settings) -> Registry:
    if settings.store.data_dir == "none":
        return FileRegistry()
    try:
        return FileRegistry(Path(settings.store.data_dir) / VERSIONS_FILE)
    except (Trouble, OSError) as error:
        log.warning("versions of knowledge bases are kept in memory only: %s", error)
        return FileRegistry()


def given_secret(settings: Settings) -> bytes | None:
    """The secret that the configuration states. Raises `ConfigurationError`."""
    if settings.store.secret_file is None:
        return None
    path = Path(settings.store.secret_file)
    try:
        text = path.read_bytes().strip()
    except OSError as error:
        raise ConfigurationError(f"`store.secret_file`: cannot read {path}: {error.strerror}") from None
    if len(text) < LEAST_SECRET:
        raise ConfigurationError(f"`store.secret_file`: {path} must have at least {LEAST_SECRET} characters")
    return hashlib.blake2b(text, digest_size=key.SECRET_BYTES, person=b"secret file").digest()


def _embedded(settings: Settings, telemetry: Telemetry) -> tuple[Stocked, bytes, Sqlite | None]:
    """The embedded store, the secret of its directory, and its file, if it has one."""
    memory = Memory(settings.store.memory_bytes)
    disk: Sqlite | None = None
    telemetry.gauge("store_dropped", "Answers put and not written to the disk.", lambda: disk.dropped if disk else 0)
    if settings.store.data_dir == "none":
        return memory, secrets.token_bytes(key.SECRET_BYTES), None
    directory = Path(settings.store.data_dir)
    try:
        disk = Sqlite(directory / CACHE_FILE, settings.store.disk_bytes)
        secret = _secret(directory / SECRET_FILE)
    except (Trouble, OSError) as error:
        log.warning("answers are kept in memory only: %s", error)
        return memory, secrets.token_bytes(key.SECRET_BYTES), None
    return Tiered(memory, GuardedStore(disk, "cache file", settings.store.deadline, telemetry)), secret, disk


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
