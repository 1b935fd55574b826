"""What a Redis says of itself, and what is to be done about it.

Asked with what a user of few permissions may run: what is denied is unknown, never an error. Whether a command exists
is told apart from whether it is permitted: a server names an unknown command before it looks at permissions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from redis.exceptions import NoPermissionError, ResponseError

from cacheproxy.core.redis_url import Target, Topology

OLDEST = (6, 2)
"""The first version that has everything in use: `SET … PXAT` is the newest of it."""
Level = Literal["error", "warning", "info"]
_CONTAINER = "docker run -p 6379:6379 redis:8"


@dataclass(frozen=True, slots=True)
class Survey:
    """None is unknown. `mode`: ``standalone``, ``cluster`` or ``sentinel``; `replicas`: connected ones; `search`: the
    module's version, None for no module, ``?`` for one that hides it; `hybrid`: FT.HYBRID can be used; `coordinated`:
    a node of a cluster searches all of it; `eviction`: the policy; `maxmemory`: bytes, 0 for no bound; `rdb`, `aof`:
    whether it saves snapshots, a log of writes."""

    server: Literal["redis", "valkey"] = "redis"
    version: str = "?"
    mode: str | None = None
    role: str | None = None
    replicas: int | None = None
    search: str | None = None
    hybrid: bool = False
    coordinated: bool = False
    eviction: str | None = None
    maxmemory: int | None = None
    rdb: bool | None = None
    aof: bool | None = None

    @property
    def cluster(self) -> bool:
        """Whether it is a node of a cluster."""
        return self.mode == "cluster"


@dataclass(frozen=True, slots=True)
class Remark:
    """`text` is a sentence or two that say what is so and what to do."""

    level: Level
    text: str


_ASKED: tuple[tuple[str, ...], ...] = (
    ("INFO",),
    ("MODULE", "LIST"),
    ("CONFIG", "GET", "save"),
    ("FT._LIST",),
    ("FT.HYBRID",),
    ("SEARCH.CLUSTERINFO",),
)


async def ask(redis: Any, where: dict[str, Any]) -> Survey:
    """The survey of one server, in one round trip; `where`: options of a command that lead to it. Raises what a command
    raises if it does not answer."""
    pipeline = redis.pipeline(transaction=False) if not where else redis.pipeline()
    for words in _ASKED:
        # As one word: redis-py knows replies by it.
        pipeline.execute_command(
            " ".join(words[:2]) if words[0] in ("MODULE", "CONFIG") else words[0], *words[2:], **where
        )
    info, modules, saving, indexes, hybrid, coordinator = await pipeline.execute(raise_on_error=False)
    for reply in info, modules, saving, indexes, hybrid, coordinator:
        if isinstance(reply, Exception) and not isinstance(reply, ResponseError):
            raise reply
    told: dict[str, Any] = info if isinstance(info, dict) else {}
    known = _version_of_search(modules)
    if known is None and _exists(indexes):
        known = "?"
    return Survey(
        server="valkey" if told.get("server_name") == "valkey" else "redis",
        version=str(told.get("valkey_version") or told.get("redis_version") or "?"),
        mode=_mode(told),
        role=_text(told.get("role")),
        replicas=told.get("connected_slaves"),
        search=known,
        hybrid=_exists(hybrid) and not isinstance(hybrid, NoPermissionError),
        coordinated=_exists(coordinator),
        eviction=_text(told.get("maxmemory_policy")),
        maxmemory=told.get("maxmemory"),
        rdb=bool(saving.get("save")) if isinstance(saving, dict) and "save" in saving else None,
        aof=bool(told["aof_enabled"]) if "aof_enabled" in told else None,
    )


def _text(value: object) -> str | None:
    return str(value) if value is not None else None


def _mode(told: dict[str, Any]) -> str | None:
    return _text(told.get("redis_mode") or told.get("server_mode"))


def _exists(reply: object) -> bool:
    """Whether a command that was tried is known to the server."""
    return not isinstance(reply, Exception) or "unknown command" not in str(reply).lower()


def _version_of_search(modules: object) -> str | None:
    if not isinstance(modules, list):
        return None
    for module in modules:
        facts = {str(name, "utf-8") if isinstance(name, bytes) else str(name): value for name, value in module.items()}
        if facts.get("name") in (b"search", "search", b"ft", "ft"):
            number = int(facts.get("ver", 0))
            return f"{number // 10_000}.{number // 100 % 100}.{number % 100}"
    return None


def merged(surveys: Sequence[Survey]) -> Survey:
    """One for all nodes of a cluster: of each fact the worst."""
    first = min(surveys, key=lambda one: _numbers(one.version))
    searching = all(one.search is not None for one in surveys)
    return replace(
        first,
        replicas=_sum(one.replicas for one in surveys),
        search=min(one.search or "" for one in surveys) if searching else None,
        hybrid=all(one.hybrid for one in surveys),
        coordinated=all(one.coordinated for one in surveys),
        eviction=next((one.eviction for one in surveys if one.eviction == "noeviction"), first.eviction),
        maxmemory=_least(one.maxmemory for one in surveys),
        rdb=any(one.rdb for one in surveys) or first.rdb,
        aof=all(one.aof for one in surveys) if first.aof is not None else None,
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _least(bounds: Iterable[int | None]) -> int | None:
    """The lowest of the bounds; 0, none, is lower than any."""
    known = [bound for bound in bounds if bound is not None]
    return min(known, default=None)


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else (10**6,)


def remarks(survey: Survey, target: Target) -> tuple[Remark, ...]:
    """What is wrong or worth knowing, errors first. Pure."""
    found = [remark for check in _CHECKS for remark in check(survey, target)]
    return tuple(sorted(found, key=lambda remark: ("error", "warning", "info").index(remark.level)))


def _check_server(survey: Survey, _: Target) -> Iterable[Remark]:
    if survey.mode == "sentinel":
        yield Remark("error", "This is a Sentinel, not a Redis; write redis+sentinel://host:26379/name-of-the-primary.")
    if _numbers(survey.version) < OLDEST:
        yield Remark(
            "error", f"Redis {survey.version} is too old: 6.2 or later is needed, which has SET with PXAT. Use Redis 8."
        )
    if survey.server == "valkey":
        yield Remark(
            "info",
            "This is Valkey: exact answers are shared through it; its module for search has not been tried with us.",
        )


def _check_topology(survey: Survey, target: Target) -> Iterable[Remark]:
    if survey.role == "slave":
        text = "This is a replica, which takes no writes: name the primary, or let it be found by redis+sentinel://"
        yield Remark("error", f"{text} (Sentinels) or redis+cluster:// (a cluster).")
    scheme = "rediss" if target.tls else "redis"
    if survey.cluster and target.topology is not Topology.CLUSTER:
        text = f"This is a node of a cluster, reached as if it were alone: write {scheme}+cluster://host:port"
        yield Remark("error", f"{text}, with one or more of its nodes.")
    if survey.mode == "standalone" and target.topology is Topology.CLUSTER:
        yield Remark("error", f"This is no cluster: write {scheme}://host:port.")


def _check_search(survey: Survey, _: Target) -> Iterable[Remark]:
    if survey.search is None:
        text = "This server cannot search, so that the semantic layer cannot use it; exact answers are shared all the"
        yield Remark("info", f"{text} same. Redis 8 and Redis Stack can: {_CONTAINER}")
    elif survey.cluster and not survey.coordinated:
        text = "Each node of this cluster searches its own keys only, so that the semantic layer is off here; exact"
        yield Remark(
            "warning",
            f"{text} answers are shared all the same. A Redis without cluster searches everything: {_CONTAINER}",
        )


def _check_memory(survey: Survey, _: Target) -> Iterable[Remark]:
    if survey.maxmemory and survey.eviction == "noeviction":
        text = "When its memory is full this server refuses every write (OOM), so that nothing new is shared:"
        yield Remark("warning", f"{text} set maxmemory-policy to allkeys-lru or volatile-ttl.")
    if survey.maxmemory and (survey.eviction or "").endswith("-random"):
        text = (
            "This server lets go of keys at random, now and then of the count of removals: then all answers are given"
        )
        yield Remark("warning", f"{text} up. Set maxmemory-policy to allkeys-lru or volatile-ttl.")
    if survey.maxmemory == 0:
        text = "This server has no bound on its memory: answers expire, but many of them can fill the machine."
        yield Remark("info", f"{text} Set maxmemory, and maxmemory-policy to allkeys-lru or volatile-ttl.")


def _check_persistence(survey: Survey, _: Target) -> Iterable[Remark]:
    if survey.rdb or survey.aof:
        text = (
            "This server saves what it holds (RDB or AOF), which is of no use: after a restart no answer from before is"
        )
        yield Remark("info", f"{text} read, since it may have been purged after it was saved.")


_CHECKS: tuple[Callable[[Survey, Target], Iterable[Remark]], ...] = (
    _check_server,
    _check_topology,
    _check_search,
    _check_memory,
    _check_persistence,
)
