"""Names may contain anything: one of them is declared, listed, purged and versioned without touching any other; in
memory, on the disk, in Redis."""

import json
import random
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from yarl import URL

from tests.commands import Commands
from tests.examples import SEED, TIMES
from tests.fakes.backend import completion
from tests.redis_fixtures import redis, redis_server  # noqa: F401
from tests.rig import Client

LONG = 10_000
NAMES = [
    "a", "A", "b", "a,b", "a, b", " a", "a ", "a@b", "a@", "a@b@c", "a%2Cb", "a%40b", "%", "%25", "%ZZ", "100%", "a+b", "a b",
    "a/b", "/", "../x", ".", "..", "?q=1", "#x", "a&b=c", ";", ":", "doc:a", "doc:", "*", "a*", "[a]", "{a}", "{", "}", "${x}",
    "$(x)", "`x`", '"', "'", '"a"', "\\", "a\\", "\n", "a\nb", "a\r\nb: c", "\t", "\0", "\0\0", "a\0b", "\0\1", "\x7f", "\u200b",
    "\u2028", "\ufeff", "\ufffe", "é", "e\u0301", "ß", "SS", "ı", "İ", "ﬁ", "中文", "\u202eabc", "😀", "👨‍👩‍👧", "\U0010ffff", "--all", "-", "null",
    "true", "0", "1", "-1", "nan", "all", "<script>", "'; DROP TABLE entry; --", "|", "a|b", "~a", "@kb:{a}", "-@a", "(a)",
    "x" * LONG, "x" * (LONG - 1), "é" * (LONG // 2), "😀" * (LONG // 4), "%" * LONG, "," * (LONG // 2),
]  # fmt: skip
ALPHABET = ",@%\"'\\\n\r\0{}[]()*|-: /é中😀aA\u0301\x85"


def drawn(count: int) -> list[str]:
    """More of the kind, of few signs, so that they are like one another."""
    rolled = random.Random(SEED)
    return ["".join(rolled.choices(ALPHABET, k=rolled.randint(1, 4))) for _ in range(count)]


def path(name: str) -> str:
    """A name as a segment of a path: dots too, which a client would take for steps."""
    return quote(name, safe="").replace(".", "%2E")


EVERY = list(dict.fromkeys([*drawn(40 * TIMES), *NAMES]))


async def answer(exchange) -> None:
    """What a backend says, whose answers may be labelled by the request's `extra`."""
    told = (exchange.seen.json or {}).get("extra", "")
    await exchange.json(completion(), extra=told.encode())


def few(count: int) -> list[str]:
    """Some of them, among them the longest."""
    return [*random.Random(f"{SEED} {count}").sample(EVERY[:-1], min(count, len(EVERY)) - 1), EVERY[-1]]


class Desk(Client):
    """Declares names at a proxy, and calls its admin listener."""

    admin = ""
    names: list[str] = EVERY

    async def call(self, method: str, path: str, document=None) -> tuple[int, dict]:
        data = None if document is None else json.dumps(document)
        async with self.session.request(method, URL(self.admin + path, encoded=True), data=data) as told:
            return told.status, await told.json()

    async def purge(self, **selector) -> dict:
        told = {"selector": selector, "confirm": "purge all"}
        status, told = await self.call("POST", "/admin/purge", told)
        assert status == 200, told
        return told

    async def count(self, **selector) -> int:
        told = {"selector": selector or {"all": True}, "dry_run": True}
        status, done = await self.call("POST", "/admin/purge", told)
        assert status == 200, done
        return done["matched"]

    async def listed(self, **query) -> list[dict]:
        rows, cursor = [], ""
        while cursor is not None:
            told = "&".join(f"{name}={quote(value, safe='')}" for name, value in {**query, "cursor": cursor}.items())
            status, page = await self.call("GET", f"/admin/entries?limit=1000&{told}")
            assert status == 200, page
            rows += page["entries"]
            cursor = page["cursor"]
        return rows


@pytest.fixture(params=["memory", "sqlite", pytest.param("redis", marks=pytest.mark.redis)])
async def desk(request, start, session, tmp_path, backend) -> Desk:
    backend.script = answer
    told = {"memory": {}, "sqlite": {"store__data_dir": str(tmp_path / "data")}}.get(request.param)
    proxy = await start(**(told if told is not None else {"redis__url": request.getfixturevalue("redis").url}))
    made = Desk(proxy.base, session)
    made.admin = proxy.admin
    made.names = few({"memory": 200, "sqlite": 20, "redis": 8}[request.param] * TIMES)  # where a purge takes longer
    return made


KINDS = {
    "tag": ("X-Cache-Tags", "tags"), "kb": ("X-Cache-KB", "kb"), "namespace": ("X-Cache-Namespace", "namespace"),
    "model": (None, "model"),
}  # fmt: skip
LISTS = ("tag", "kb")


async def declare(desk: Desk, kind: str, name: str, *, by_backend: bool = False) -> None:
    header, _ = KINDS[kind]
    written = quote(name, safe="")
    if header is None:
        told = {"model": name}
    elif by_backend and kind in LISTS:
        told = {"extra": f"{'Cache-Tag' if kind == 'tag' else header}: {written}\r\n"}
    else:
        told = {header: written}
    assert (await desk.chat(seed=EVERY.index(name), stop=kind, **told)).get("cache-status").endswith("; stored")


def shown(row: dict, kind: str) -> list[str]:
    return row["tags" if kind == "tag" else kind] if kind in LISTS else [row[kind]]


async def is_alone(desk: Desk, kind: str, name: str) -> None:
    """The name is on exactly one answer, and purged with it alone."""
    (row,) = await desk.listed(**{kind: name})
    assert shown(row, kind) == [name]
    before = await desk.count()
    told = await desk.purge(**{KINDS[kind][1]: [name] if kind in LISTS else name})
    assert (told["matched"], told["purged"]) == (1, 1), name
    assert await desk.listed(**{kind: name}) == []
    assert await desk.count() == before - 1


async def test_long_names_are_bytes_that_are_counted(desk, session):
    """Else a store could be filled with what is not counted."""
    told = {"X_Cache_Tags": ",".join(f"{number}{'x' * 1000}" for number in range(50)), "X_Cache_Namespace": "n" * LONG}
    await desk.chat(X_Cache_KB="k" * LONG, **told)
    (row,) = await desk.listed()
    assert row["bytes"] > 50 * 1000 + 2 * LONG


@pytest.mark.parametrize("turn", range(len(KINDS)))
async def test_each_is_listed_and_purged_alone(desk, turn):
    """As one kind of name, its neighbours as others."""
    kinds = [[*KINDS][(turn + number) % len(KINDS)] for number in range(len(desk.names))]
    for number, (kind, name) in enumerate(zip(kinds, desk.names, strict=True)):
        await declare(desk, kind, name, by_backend=number % 3 == 1)
    for kind, name in zip(kinds, desk.names, strict=True):
        await is_alone(desk, kind, name)
    assert await desk.count() == 0


async def test_each_is_a_knowledge_base_of_its_own(desk):
    """And each may be a version's name."""
    for name in desk.names:
        await declare(desk, "kb", name)
    for name in desk.names:
        status, told = await desk.call("PUT", f"/admin/kb/{path(name)}", {"version": name})
        assert (status, told.get("name"), told.get("version"), told.get("purged")) == (200, name, name, 1), told
    told = (await desk.call("GET", "/admin/kb"))[1]["kb"]
    assert {row["name"]: row["version"] for row in told} == {name: name for name in desk.names}


async def test_each_is_a_document_of_its_own(desk):
    for name in desk.names:
        label = quote(f"doc:{name}", safe="")
        await desk.chat(seed=EVERY.index(name), X_Cache_KB="handbook", X_Cache_Tags=label)
    for number, name in enumerate(desk.names):
        told = {"version": str(number), "changed_documents": [name]}
        assert (await desk.call("PUT", "/admin/kb/handbook", told))[1]["purged"] == 1, name


async def test_each_is_found_in_a_body(start, session, backend):
    """As it stands there; what has a comma counts as what that parts too."""
    backend.script = answer
    proxy = await start(kb__extract=[{"into": "tags", "pointer": "/metadata/tag"}])
    desk = Desk(proxy.base, session)
    desk.admin = proxy.admin
    for number, name in enumerate(EVERY):
        await desk.chat(metadata={"tag": [name]}, seed=number)
        rows = await desk.listed(tag=name)
        assert len(rows) == (1 if name.strip() else 0), name
        assert await desk.count(tags=name) == len(rows)
        await desk.purge(all=True)


TYPED = [name for name in few(30) if "\0" not in name][: 12 * TIMES]
"""What a shell can hand to a command."""


@pytest.fixture(scope="module")
def commands(tmp_path_factory) -> Iterator[Commands]:
    started = Commands(tmp_path_factory.mktemp("commands"))
    yield started
    started.close()


async def test_each_may_be_typed(commands, start, session, backend):
    backend.script = answer
    proxy = await start()
    desk = Desk(proxy.base, session)
    desk.admin = proxy.admin
    for name in TYPED:
        await declare(desk, "tag", name)
        await declare(desk, "kb", name)
    for turn, name in enumerate(TYPED):
        before = await desk.count()
        ways = [("purge", f"--tag={name}"), ("purge", f"--kb={name}"), ("kb", "set", "--", name, "v")]
        way = ways[turn % len(ways)]
        at = way.index("--") if "--" in way else len(way)
        done = await commands.run(*way[:at], "--admin-url", desk.admin, *way[at:])
        assert (done.code, done.err) == (0, ""), name
        assert done.out.endswith("1 answers removed\n")
        assert await desk.count() == before - 1


@pytest.mark.parametrize("name", [".", "..", "a/../b", "%2E%2E"])
async def test_a_name_is_no_step_in_a_path(commands, proxy, client, session, name):
    await client.chat(X_Cache_KB=quote(name, safe=""))
    await client.chat(seed=1, X_Cache_KB="b")
    done = await commands.run("kb", "set", "--admin-url", proxy.admin, "--", name, "v")
    assert (done.code, done.out) == (0, f"{name} is at v (published): 1 answers removed\n")
