"""What the configuration says of the shared store."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SecretStr

from cacheproxy.core import redis_url
from cacheproxy.schema.kinds import Duration, Patience, Size
from cacheproxy.schema.model import Model


def _read_redis(value: Any) -> Any:
    if isinstance(value, str) and isinstance(wrong := redis_url.read(value), str):
        raise ValueError(wrong)
    return value


def _read_prefix(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch(r"[A-Za-z0-9._:-]{1,64}", value):
        raise ValueError("must be 1 to 64 letters, digits, dots, underscores, colons or hyphens")
    return value


class NearSettings(Model):
    max_age: Duration = 0.0
    """How old a copy may be that a replica keeps in its own memory; 0 keeps none. A purge by another replica is
    obeyed at the latest after so long."""
    bytes: Size = 64 * 2**20
    """Bytes of such copies."""


class RedisSettings(Model):
    url: Annotated[SecretStr | None, BeforeValidator(_read_redis)] = None
    """The Redis that all replicas share: `redis://host:6379`, `rediss://` (TLS), `unix:///path`,
    `redis+sentinel://host:26379,host2:26379/name`, `redis+cluster://host:6379`. Without it each proxy has its own
    store."""
    timeout: Patience = 0.05
    """How long Redis may delay a request."""
    max_connections: int = Field(default=8, ge=1, le=1000)
    """Most connections to Redis, of one proxy (in a cluster: to one node)."""
    prefix: Annotated[str, BeforeValidator(_read_prefix)] = "cacheproxy"
    """What the names of all keys begin with. Proxies with the same prefix share their answers."""
    username: str | None = None
    """The user of Redis, if the URL has none."""
    password_file: str | None = None
    """A file with the password, read at every connection."""
    sentinel_password_file: str | None = None
    """A file with the Sentinels' own password."""
    ca_file: str | None = None
    """Certificates that the server's must come from; the system's if none."""
    cert_file: str | None = None
    """Our own certificate, for servers that want one."""
    key_file: str | None = None
    """Its key."""
    near: NearSettings = NearSettings()
