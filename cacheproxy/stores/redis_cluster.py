"""redis-py's client of a cluster, made so that nobody waits for more than his own command, and with a pool that waits.

The map of the cluster is learned in the background, and again after each failure; a node's connections outlive it: one
that no longer serves a slot says so (MOVED) and is followed. The configured hosts remain the way in, by their names.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from redis._parsers.commands import AsyncCommandsParser
from redis.asyncio.cluster import ClusterNode, NodesManager, PipelineCommand, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AskError, MovedError
from redis.exceptions import ConnectionError as BrokenError
from redis.exceptions import TimeoutError as SlowError

from cacheproxy.stores.redis_pool import Pool

MakePool = Callable[[str, int], Pool]

_asking: ContextVar[object] = ContextVar("_asking", default=None)
"""The node that is to be told ASKING before this task's next command: it holds for one command of one connection."""


class Keys(AsyncCommandsParser):
    """Where the first key of a command stands, for the commands that a store uses: the server need not be asked, and
    says itself if the others lie elsewhere."""

    _COUNTED = frozenset({"EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO"})

    async def initialize(self, node: ClusterNode | None = None) -> None:
        pass

    async def get_keys(self, *args: Any) -> tuple[Any, ...] | None:
        name = str(args[0]).upper()
        return args[3:4] if name in self._COUNTED else args[1:2]


class Node(ClusterNode):
    """One server of a cluster, with a pool that waits; `failed` is called when it cannot be reached."""

    __slots__ = ("failed", "pool")

    def __init__(
        self, host: str, port: int, server_type: str | None = None, *, pool: Pool, failed: Callable[[], None],
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(host, port, server_type, **options)
        self.pool = pool
        self.failed = failed

    async def execute_command(self, *args: Any, asking: bool = False, **options: Any) -> Any:  # noqa: ARG002
        if args == ("ASKING",):
            _asking.set(self)
            return b"OK"
        first = _asking.get() is self
        _asking.set(None)
        connection = await self._connection()
        try:
            commands = [("ASKING",), args] if first else [args]
            await connection.send_packed_command(connection.pack_commands(commands))
            if first:
                await connection.read_response()
            return await self.parse_response(connection, args[0], **options)
        except (BrokenError, SlowError):
            self.failed()
            raise
        finally:
            await self.pool.release(connection)

    async def execute_pipeline(self, commands: list[PipelineCommand]) -> bool:
        connection = await self._connection()
        wrong = False
        try:
            await connection.send_packed_command(connection.pack_commands(command.args for command in commands))
            for command in commands:
                try:
                    command.result = await self.parse_response(connection, command.args[0], **command.kwargs)
                except Exception as error:  # noqa: BLE001 - a result like any other, as redis-py has it
                    command.result = error
                    wrong = True
                    if isinstance(error, BrokenError | SlowError):
                        self.failed()
            return wrong
        except (BrokenError, SlowError):
            self.failed()
            raise
        finally:
            await self.pool.release(connection)

    async def _connection(self) -> Any:
        try:
            return await self.pool.get_connection()
        except (BrokenError, SlowError):
            self.failed()
            raise

    async def disconnect(self) -> None:
        self.pool.drop()

    async def disconnect_free_connections(self) -> None:
        """A connection that fails has closed itself; the others may be well."""

    def update_active_connections_for_reconnect(self) -> None:
        """No connection of ours is in a state that a new map makes wrong."""


class Nodes(NodesManager):
    """The map, with nodes of ours in place of redis-py's."""

    def __init__(
        self, hosts: tuple[tuple[str, int], ...], make: Callable[[str, int, str | None], Node], **options: Any
    ) -> None:
        super().__init__([make(host, port, None) for host, port in hosts], dynamic_startup_nodes=False, **options)
        self._make = make

    def set_nodes(self, old: dict[str, ClusterNode], new: dict[str, ClusterNode], remove_old: bool = False) -> None:  # noqa: FBT002
        if remove_old:
            for name in old.keys() - new.keys():
                gone = old.pop(name)
                if isinstance(gone, Node):
                    gone.pool.drop()
        for name, node in new.items():
            if name in old:
                old[name].server_type = node.server_type
            else:
                old[name] = self._make(node.host, int(node.port), node.server_type)

    async def move_slot(self, e: AskError | MovedError) -> None:
        if self.get_node(e.host, e.port) is None:
            added = self._make(e.host, e.port, "primary")
            self.set_nodes(self.nodes_cache, {added.name: added})
        await super().move_slot(e)


class Cluster(RedisCluster):
    """`hosts`: those to ask for the map; `pool` makes the pool of a node; `options`: of the connections."""

    def __init__(self, hosts: tuple[tuple[str, int], ...], pool: MakePool, **options: Any) -> None:
        seeds = [ClusterNode(host, port) for host, port in hosts]
        # A full map is not demanded: an answer whose slot nobody serves is a miss, the others are found.
        super().__init__(
            startup_nodes=seeds, require_full_coverage=False, reinitialize_steps=0, retry=_once(), **options
        )
        self._pool = pool
        self._starting: asyncio.Task[None] | None = None
        self.commands_parser = Keys()
        self.result_callbacks.pop("SCAN")  # one node's reply is that of a single server
        self.nodes_manager = Nodes(
            hosts, self._node, require_full_coverage=False, connection_kwargs=self.connection_kwargs,
            event_dispatcher=self._event_dispatcher,
        )  # fmt: skip
        self.startup_nodes = list(self.nodes_manager.startup_nodes.values())

    def _node(self, host: str, port: int, server_type: str | None) -> Node:
        return Node(host, port, server_type, pool=self._pool(host, port), failed=self.forget, **self.connection_kwargs)

    def forget(self) -> None:
        """Learn the map anew before the next command."""
        self._initialize = True

    async def initialize(self, *_: object, **__: object) -> "Cluster":
        if self._initialize:
            if self._starting is None:
                self._starting = asyncio.get_running_loop().create_task(self._start())
                self._starting.add_done_callback(self._started)
            await asyncio.shield(self._starting)
        return self

    async def _start(self) -> None:
        await super().initialize()
        for node in self.nodes_manager.startup_nodes.values():
            await node.disconnect()

    def _started(self, task: "asyncio.Task[None]") -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # seen, even if all who waited have gone

    async def aclose(self) -> None:
        """Forget the map and use no present connection again. The pools are their maker's to close."""
        if self._starting is not None:
            await asyncio.wait([self._starting])
        self._initialize = True
        for node in (*self.nodes_manager.nodes_cache.values(), *self.nodes_manager.startup_nodes.values()):
            await node.disconnect()


def _once() -> Retry:
    return Retry(NoBackoff(), 0)
