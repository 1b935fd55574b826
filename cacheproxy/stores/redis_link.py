"""A Redis in any topology, as one client: redis-py's, built from parts, with deadlines, a bound and no retries.

Commands raise what redis-py raises, or `Trouble`; what that means says `redis_trouble.trouble`.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakSet

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from cacheproxy.core.redis_url import Target, Topology
from cacheproxy.stores import redis_survey
from cacheproxy.stores.redis_cluster import Cluster
from cacheproxy.stores.redis_dial import Dial, Names, Seal, Streams, by_socket, by_tcp
from cacheproxy.stores.redis_pool import Pool
from cacheproxy.stores.redis_sentinel import Sentinels
from cacheproxy.stores.redis_trouble import trouble
from cacheproxy.stores.redis_wire import FileCredentials

CLIENT_NAME = "cacheproxy"
CLUSTER_SHARDS = 64
SHORTEST_CONNECT = 1.0
"""Seconds that making a connection may take at least: a TLS handshake may take longer than an answer may."""


@dataclass(frozen=True, slots=True)
class LinkTerms:
    """`timeout`: seconds that a server may take to answer a command; `max_connections`: to a server, or to each node of
    a cluster. The files are read at each connection: a password (`username`, if given, goes with it, in place of the
    URL's), and for TLS whom to trust and what to show, in PEM."""

    timeout: float = 0.05
    max_connections: int = 16
    password_file: str | None = None
    username: str | None = None
    sentinel_password_file: str | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


class Link:
    """The client of `target`. Raises `ConfigurationError` for certificates that cannot be used; connects to nothing
    before the first command."""

    def __init__(self, target: Target, terms: LinkTerms) -> None:
        self.target = target
        self._terms = terms
        self._names = Names()
        self._seal = Seal(terms.ca_file, terms.cert_file, terms.key_file) if target.tls else None
        self._pools: WeakSet[Pool] = WeakSet()
        self.made = 0
        """Connections made so far. While it stands, nothing is heard from a server that was not heard from before."""
        self._sentinels = self._watchers() if target.topology is Topology.SENTINEL else None
        self.redis: Redis | Cluster = self._client()

    def __repr__(self) -> str:
        return f"<Link {self.target.shown} {self.connections} connections>"

    @property
    def topology(self) -> Topology:
        return self.target.topology

    @property
    def shards(self) -> int:
        """In how many parts keys are to be divided so that all nodes carry their share."""
        return CLUSTER_SHARDS if self.target.topology is Topology.CLUSTER else 1

    @property
    def connections(self) -> int:
        """Connections that there are now, those being made included."""
        return sum(pool.size for pool in self._pools)

    def listener(self) -> PubSub:
        """A subscriber with a connection of its own, beside the bound. In a cluster any node tells everything."""
        return PubSub(self._pool(self._way(*self._first()), 1))

    async def drop(self) -> None:
        """Use none of the present connections again, so that names and Sentinels are asked anew: for a server that is
        not what it was. Commands under way are not disturbed."""
        self._leave()

    def _leave(self) -> None:
        for pool in list(self._pools):
            pool.drop()
        if isinstance(self.redis, Cluster):
            self.redis.forget()

    async def everywhere(self) -> list[dict[str, Any]]:
        """Options of `redis.execute_command`, one for each server that holds a part of the keys."""
        if not isinstance(self.redis, Cluster):
            return [{}]
        await self.redis.initialize()
        return [{"target_nodes": node} for node in self.redis.get_primaries()]

    async def survey(self) -> redis_survey.Survey:
        """What the server says of itself, in a cluster each of them. Raises `Trouble`."""
        try:
            return redis_survey.merged([await redis_survey.ask(self.redis, node) for node in await self.everywhere()])
        except Exception as error:  # noqa: BLE001 - whatever a reply of another shape ends in
            raise trouble(error) from None

    async def close(self) -> None:
        """Close every connection; commands that wait or run raise."""
        for pool in list(self._pools):
            await pool.aclose()
        await self.redis.aclose()
        if self._sentinels is not None:
            await self._sentinels.close()

    # Its parts

    def _client(self) -> Redis | Cluster:
        if self.target.topology is Topology.CLUSTER:
            return Cluster(
                self.target.hosts, self._node_pool, max_connections=self._terms.max_connections, **self._options()
            )  # fmt: skip
        # The protocol is redis-py's default: RESP3 on the wire, answers in the shape that both protocols share.
        return Redis(connection_pool=self._pool(self._way(*self._first()), self._terms.max_connections))

    def _first(self) -> tuple[str, int]:
        return self.target.hosts[0] if self.target.hosts else ("", 0)

    def _way(self, host: str, port: int) -> Dial:
        if self._sentinels is not None:
            return self._sentinels.dial
        if self.target.path is not None:
            return partial(by_socket, self.target.path)
        return partial(by_tcp, self._names, self._seal, host, port)

    def _node_pool(self, host: str, port: int) -> Pool:
        return self._pool(self._way(host, port), self._terms.max_connections)

    async def _counted(self, dial: Dial) -> Streams:
        streams = await dial()
        self.made += 1
        return streams

    def _pool(self, dial: Dial, bound: int) -> Pool:
        dial = partial(self._counted, dial)
        pool = Pool(bound, dial=dial, primary=self._sentinels is not None, **self._wire(), **self._login())
        self._pools.add(pool)
        return pool

    def _options(self) -> dict[str, Any]:
        return {
            "socket_timeout": self._terms.timeout,
            "health_check_interval": 0,
            "client_name": CLIENT_NAME,
            "driver_info": None,
            "decode_responses": False,
        }

    def _wire(self) -> dict[str, Any]:
        deadline = max(self._terms.timeout, SHORTEST_CONNECT)
        retry = Retry(NoBackoff(), 0)
        return {**self._options(), "deadline": deadline, "retry": retry, "socket_read_size": 2**16}

    def _login(self) -> dict[str, Any]:
        username = self._terms.username or self.target.username
        database = {"db": self.target.database}
        if self._terms.password_file is not None:
            return {**database, "credential_provider": FileCredentials(self._terms.password_file, username)}
        return {**database, "username": username, "password": self.target.password}

    def _watchers(self) -> Sentinels:
        to = partial(by_tcp, self._names, self._seal)
        dials: list[Dial] = [partial(to, host, port) for host, port in self.target.hosts]
        file = self._terms.sentinel_password_file
        login = {"credential_provider": FileCredentials(file, None)} if file is not None else {}
        return Sentinels(self.target.service or "", dials, to, self._leave, **self._wire(), **login)
