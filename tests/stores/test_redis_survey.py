"""What a Redis says of itself, and what is said about it."""

from dataclasses import replace

import pytest
from redis.exceptions import ConnectionError as BrokenError

from cacheproxy.core.redis_url import read
from cacheproxy.errors import Trouble
from cacheproxy.stores.redis_survey import Remark, Survey, ask, merged, remarks
from tests.fakes import relay as replies
from tests.parts import redis as part
from tests.parts import redis_fleet

SINGLE, TLS = read("redis://h"), read("rediss://h")
SENTINEL, CLUSTER = read("redis+sentinel://h/main"), read("redis+cluster://h")
GOOD = Survey("redis", "8.4.0", "standalone", "master", 0, "8.4.0", True, False, "allkeys-lru", 10**9, False, False)
NODE = Survey("redis", "8.4.0", "cluster", "master", 0, "8.4.0", True, True, "allkeys-lru", 10**9, False, False)


def but(survey: Survey, **other) -> Survey:
    return replace(survey, **other)


SAID = [
    # the survey, the target, the remarks: level and a part of the text
    (GOOD, SINGLE, []),
    (GOOD, SENTINEL, []),
    (NODE, CLUSTER, []),
    (Survey(), SINGLE, [("info", "cannot search")]),  # all is unknown
    (but(GOOD, role="slave"), SINGLE, [("error", "is a replica")]),
    (but(GOOD, mode="sentinel"), SINGLE, [("error", "redis+sentinel://host:26379/name")]),
    (NODE, SINGLE, [("error", "write redis+cluster://host:port")]),
    (NODE, TLS, [("error", "write rediss+cluster://host:port")]),
    (GOOD, CLUSTER, [("error", "is no cluster: write redis://host:port")]),
    (but(GOOD, version="6.0.16"), SINGLE, [("error", "Redis 6.0.16 is too old: 6.2 or later")]),
    (but(GOOD, version="2.8"), SINGLE, [("error", "Redis 2.8 is too old")]),
    (but(GOOD, version="6.2.0"), SINGLE, []),
    (but(GOOD, version="10.0.0"), SINGLE, []),
    (but(GOOD, version="unstable"), SINGLE, []),
    (but(GOOD, server="valkey", version="9.1.2"), SINGLE, [("info", "This is Valkey")]),
    (but(GOOD, search=None), SINGLE, [("info", "docker run -p 6379:6379 redis:8")]),
    (but(GOOD, search="?"), SINGLE, []),
    (
        but(GOOD, search=None, eviction="noeviction", version="6.0.0"), SINGLE,
        [("error", "too old"), ("warning", "maxmemory-policy"), ("info", "cannot search")],
    ),
    (but(NODE, coordinated=False), CLUSTER, [("warning", "semantic layer is off here")]),
    (but(NODE, search=None, coordinated=False), CLUSTER, [("info", "cannot search")]),
    (but(GOOD, eviction="noeviction"), SINGLE, [("warning", "set maxmemory-policy to allkeys-lru or volatile-ttl")]),
    (but(GOOD, maxmemory=0, eviction="noeviction"), SINGLE, [("info", "no bound on its memory")]),
    (but(GOOD, maxmemory=None, eviction="noeviction"), SINGLE, []),
    (but(GOOD, rdb=True), SINGLE, [("info", "saves what it holds")]),
    (but(GOOD, rdb=True, aof=None), SINGLE, [("info", "saves what it holds")]),
    (but(GOOD, rdb=True, aof=True), SINGLE, [("info", "saves what it holds")]),
    (but(GOOD, rdb=None, aof=None), SINGLE, []),
    (but(GOOD, eviction="allkeys-random"), SINGLE, [("warning", "at random")]),
    (but(GOOD, eviction="volatile-random"), SINGLE, [("warning", "at random")]),
    (but(GOOD, eviction="volatile-random", maxmemory=None), SINGLE, []),
    (
        but(GOOD, rdb=True, search=None, role="slave", maxmemory=0), SINGLE,
        [("error", "replica"), ("info", "cannot search"), ("info", "no bound"), ("info", "RDB")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("survey", "target", "said"), SAID)
def test_what_is_said_about_it(survey, target, said):
    """Errors first; each is a sentence that ends."""
    found = remarks(survey, target)
    assert [remark.level for remark in found] == [level for level, _ in said]
    for remark, (_, part_of_it) in zip(found, said, strict=True):
        assert part_of_it in remark.text
        assert remark.text.endswith((".", "redis:8"))


def test_of_several_nodes_the_worst_counts():
    other = but(
        NODE, version="8.10.1", search="8.2.0", hybrid=False, replicas=2, eviction="noeviction", maxmemory=0, rdb=True,
        aof=True,
    )  # fmt: skip
    assert merged([NODE]) == NODE
    expected = but(other, version="8.4.0", replicas=2, aof=False)
    assert merged([NODE, other]) == merged([other, NODE]) == expected
    assert merged([NODE, but(NODE, search=None)]).search is None
    assert merged([NODE, but(NODE, coordinated=False)]).coordinated is False
    assert merged([but(NODE, maxmemory=None, rdb=None), NODE]).maxmemory == 10**9
    nothing = but(NODE, maxmemory=None, replicas=None, rdb=None, aof=None, eviction=None)
    assert merged([nothing, nothing]) == nothing


@pytest.mark.redis
async def test_a_server_with_search(redis, link_to):
    survey = await link_to(redis.url).survey()
    assert survey == Survey(
        "redis", "8.2.3", "standalone", "master", 0, "2.10.5", False, False, "noeviction", 0, False, False
    )
    assert [remark.level for remark in remarks(survey, SINGLE)] == ["info"]


@pytest.mark.redis
async def test_it_is_one_round_trip_that_leaves_no_trace(redis, relay, link_to):
    link = link_to(relay.url)
    await link.redis.ping()
    before = relay.round_trips
    await link.survey()
    assert relay.round_trips == before + 1
    assert redis.cli("DBSIZE") == 0


@pytest.mark.redis
async def test_a_server_that_saves(redis_start, link_to):
    server = redis_start(search=False, config=["save 60 1", "maxmemory 100mb", "maxmemory-policy volatile-ttl"])
    survey = await link_to(server.url).survey()
    assert (survey.rdb, survey.aof, survey.search) == (True, False, None)
    assert (survey.maxmemory, survey.eviction) == (100 * 2**20, "volatile-ttl")
    server.cli("CONFIG", "SET", "appendonly", "yes")
    assert (await link_to(server.url).survey()).aof is True
    server.kill()  # which would save at length


@pytest.mark.redis
async def test_a_user_who_may_nothing(redis_start, link_to):
    """What is denied is unknown; that there is a search shows all the same."""
    server = redis_start(acl=["user app on >pw ~* -@all +client|setname"])
    link = link_to(server.url.replace("//", "//app:pw@"))
    assert await link.survey() == Survey(search="?")


@pytest.mark.redis
@pytest.mark.parametrize(
    ("reply", "there"),
    [
        (b"-ERR wrong number of arguments for 'FT.HYBRID' command\r\n", True),
        (b"-NOPERM User app has no permissions to run the 'ft.hybrid' command\r\n", False),
        (b"-ERR unknown command 'FT.HYBRID', with args beginning with: \r\n", False),
    ],
)
async def test_a_command_that_may_be_used(relay, link_to, reply, there):
    relay.answer(reply, "FT.HYBRID")
    assert (await link_to(relay.url).survey()).hybrid is there


@pytest.mark.redis
async def test_the_user_of_the_example(redis_acl, link_to):
    survey = await link_to(redis_acl.url).survey()
    assert None not in (survey.search, survey.eviction, survey.rdb, survey.aof, survey.replicas)


@pytest.mark.redis
async def test_valkey(redis_start, link_to):
    server = redis_start(search=False, server="valkey")
    survey = await link_to(server.url).survey()
    assert (survey.server, survey.version, survey.mode, survey.search) == ("valkey", "9.1.2", "standalone", None)
    assert ("info", "This is Valkey") in [(remark.level, remark.text[:14]) for remark in remarks(survey, SINGLE)]


@pytest.mark.redis
async def test_a_replica_named_in_place_of_its_primary(redis_start, tmp_path, link_to):
    primary = redis_start(search=False)
    replica = redis_fleet.replica(tmp_path / "replica", primary, search=False)
    try:
        assert (await link_to(primary.url).survey()).replicas == 1
        link = link_to(replica.url)
        assert "is a replica" in remarks(await link.survey(), link.target)[0].text
        await link.close()
    finally:
        replica.stop()


@pytest.mark.redis
@pytest.mark.skipif(not part.here(), reason="the packaged Redis exists for Linux on x86-64 only")
async def test_a_cluster_that_searches_node_by_node(tmp_path, link_to):
    cluster = redis_fleet.cluster(tmp_path, search=True)
    try:
        link = link_to(cluster.url.replace("redis:", "redis+cluster:").removesuffix("/0"))
        survey = await link.survey()
        assert (survey.cluster, survey.coordinated, survey.search, survey.role) == (True, False, "2.10.5", "master")
        assert [remark.level for remark in remarks(survey, link.target)] == ["warning", "info"]
        alone = link_to(cluster.url)
        assert remarks(await alone.survey(), alone.target)[0] == Remark(
            "error",
            "This is a node of a cluster, reached as if it were alone: write redis+cluster://host:port, with one or more of"
            " its nodes.",
        )
        await link.close()
        await alone.close()
    finally:
        cluster.stop()


@pytest.mark.redis
async def test_a_sentinel_in_place_of_a_redis(redis_start, tmp_path, link_to):
    watch = redis_fleet.sentinel(tmp_path, redis_start(search=False), [])
    try:
        link = link_to(watch.servers[0].url)
        assert "This is a Sentinel" in remarks(await link.survey(), link.target)[0].text
        await link.close()
    finally:
        watch.stop()


@pytest.mark.redis
@pytest.mark.parametrize(
    ("reply", "kind"),
    [(replies.LOADING, "loading"), (b"?\r\n", "protocol"), (b"+OK\r\n", None), (b"*1\r\n*1\r\n$1\r\nx\r\n", None)],
)
async def test_a_server_that_answers_anything(relay, link_to, reply, kind):
    """It is surveyed or in trouble; nothing else."""
    link = link_to(relay.url)
    await link.redis.ping()
    relay.answer(reply, but=replies.OPENING)
    if kind is None:
        try:
            assert isinstance(await link.survey(), Survey)
        except Trouble as trouble:
            assert trouble.kind == "protocol"
    else:
        with pytest.raises(Trouble) as caught:
            await link.survey()
        assert caught.value.kind == kind


class Broken:
    """A client of a cluster, whose pipelines give what they could not get as results."""

    def pipeline(self) -> "Broken":
        return self

    def execute_command(self, *_: object, **__: object) -> None:
        pass

    async def execute(self, *, raise_on_error: bool) -> list[Exception]:
        assert not raise_on_error
        return [BrokenError()] * 6


async def test_a_node_that_broke_off_is_not_unknown_but_in_trouble():
    with pytest.raises(BrokenError):
        await ask(Broken(), {"target_nodes": object()})


@pytest.mark.redis
async def test_nobody_there(relay, link_to):
    relay.refuse()
    with pytest.raises(Trouble) as caught:
        await link_to(relay.url).survey()
    assert caught.value.kind == "refused"
