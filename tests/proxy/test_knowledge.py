"""Versions of knowledge bases: once a version is acknowledged, no answer of another is served or stored."""

import asyncio
import json

import pytest

from cacheproxy.errors import Trouble
from tests.fakes.backend import completion, gives
from tests.rig import until

EVENT = {
    "specversion": "1.0", "type": "kb.version.published", "source": "/index", "id": "1", "subject": "handbook",
    "data": {"version": "v2", "sequence": 2},
}  # fmt: skip
KB = {"X_Cache_KB": "handbook"}


class Desk:
    """Tells of versions at a proxy."""

    def __init__(self, session, base: str) -> None:
        self._session, self._base = session, base

    async def call(self, method: str, path: str, document=None, **headers: str) -> tuple[int, dict]:
        data = document if isinstance(document, bytes) or document is None else json.dumps(document)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._session.request(method, self._base + path, data=data, headers=headers) as answer:
            return answer.status, await answer.json()

    async def put(self, name: str, version: str, **more) -> dict:
        status, told = await self.call("PUT", f"/admin/kb/{name}", {"version": version, **more})
        assert status == 200, told
        return told

    async def event(self, event=EVENT, kind="application/cloudevents+json", **headers: str) -> dict:
        status, told = await self.call("POST", "/admin/events", event, Content_Type=kind, **headers)
        assert status == 200, told
        return told


@pytest.fixture
def desk(proxy, session) -> Desk:
    return Desk(session, proxy.admin)


def says(text: str, **fields: str):
    """An answer with header fields."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return gives(completion(text), extra=lines.encode())


async def test_a_new_version_fells_what_depends_on_the_base_and_nothing_else(client, desk):
    await client.chat(**KB)
    await client.chat(user="x", X_Cache_KB="other", seed=1)
    await client.chat(seed=2)
    told = await desk.put("handbook", "v2")
    assert told == {"name": "handbook", "version": "v2", "course": "published", "matched": 1, "purged": 1, "epoch": 1}
    assert (await client.chat(**KB)).cache == "MISS"
    assert (await client.chat(user="x", X_Cache_KB="other", seed=1)).cache == "HIT"
    assert (await client.chat(seed=2)).cache == "HIT"


async def test_it_is_told_again_and_nothing_happens(client, desk):
    await desk.put("handbook", "v2")
    await client.chat(**KB)
    told = await desk.put("handbook", "v2")
    assert (told["course"], told["purged"]) == ("unchanged", 0)
    assert (await client.chat(**KB)).cache == "HIT"


async def test_what_is_current_is_listed(desk):
    await desk.put("b", "1")
    await desk.put("a%2Fb%20%7Bx%7D", "v1.2 {x}", sequence=4)
    status, told = await desk.call("GET", "/admin/kb")
    rows = [(row["name"], row["version"], row["sequence"], row["settled"]) for row in told["kb"]]
    assert (status, rows) == (200, [("a/b {x}", "v1.2 {x}", 4, True), ("b", "1", None, True)])


async def test_only_answers_that_read_a_changed_document_fall(client, desk, backend):
    """An answer that names no document may have read it."""
    tags = {1: "doc:faq-7", 2: "doc:faq-7, doc:faq-8", 3: "doc:faq-8", 4: "red", 5: None}
    for seed, tag in tags.items():
        backend.script = says("x", **({"Cache_Tag": tag} if tag else {}))
        await client.chat(seed=seed, **KB)
    told = await desk.put("handbook", "v2", changed_documents=["faq-7"])
    assert told["purged"] == 4
    got = [(await client.chat(seed=seed, **KB)).cache for seed in tags]
    assert got == ["MISS", "MISS", "HIT", "MISS", "MISS"]


@pytest.mark.parametrize("form", ["structured", "binary", "batch"])
async def test_the_same_by_event_in_each_form(client, desk, form):
    await client.chat(**KB)
    if form == "structured":
        told = await desk.event()
    elif form == "batch":
        told = (await desk.event([EVENT, {**EVENT, "type": "other"}], "application/cloudevents-batch+json"))["events"]
        assert told[1] == {"course": "ignored"}
        told = told[0]
    else:
        head = {f"ce_{name}": value for name, value in EVENT.items() if name != "data"}
        told = await desk.event(EVENT["data"], "application/json", **head)
    assert (told["course"], told["version"], told["purged"]) == ("published", "v2", 1)
    assert (await client.chat(**KB)).cache == "MISS"


async def test_an_event_is_heeded_once_and_in_its_order(client, desk):
    await desk.event()
    await client.chat(**KB)
    assert (await desk.event())["course"] == "repeated"
    late = await desk.event({**EVENT, "id": "0", "data": {"version": "v1", "sequence": 1}})
    assert (late["course"], late["version"]) == ("outdated", "v2")
    assert (await client.chat(**KB)).cache == "HIT"
    assert (await desk.event({**EVENT, "type": "kb.created"})) == {"course": "ignored"}


@pytest.mark.parametrize(
    ("method", "path", "document", "param"),
    [
        ("PUT", "/admin/kb/handbook", b"{", None),
        ("PUT", "/admin/kb/handbook", [], "body"),
        ("PUT", "/admin/kb/handbook", {}, "version"),
        ("PUT", "/admin/kb/handbook", {"version": "v", "x": 1}, "x"),
        ("POST", "/admin/events", b"{", None),
        ("POST", "/admin/events", [], None),
        ("POST", "/admin/events", {}, "specversion"),
        ("POST", "/admin/events", {**EVENT, "subject": 1}, "subject"),
    ],
)
async def test_what_cannot_be_read_is_refused_and_nothing_falls(client, desk, method, path, document, param):
    await client.chat(**KB)
    status, told = await desk.call(method, path, document)
    assert (status, told["error"]["param"]) == (400, param)
    assert (await client.chat(**KB)).cache == "HIT"


async def test_an_answer_under_way_is_its_callers_and_nobody_elses(client, desk, backend):
    going, begun = asyncio.Event(), asyncio.Event()
    old, new = says("old"), says("new")

    async def script(exchange) -> None:
        first = len(backend.seen) == 1
        if first:
            begun.set()
            await going.wait()
        await (old if first else new)(exchange)

    backend.script = script
    early = asyncio.create_task(client.chat(**KB))
    await begun.wait()
    await desk.put("handbook", "v2")
    going.set()
    answer = await early
    assert (answer.text, answer.get("x-cache-reason")) == ("old", "purged")
    after = await client.chat(**KB)
    assert (after.cache, after.text) == ("MISS", "new")
    assert (await client.chat(**KB)).text == "new"


async def test_a_backend_that_still_answers_from_the_old_version(client, desk, backend):
    """It says what it read: what it says of another version than the current one is passed on and not kept."""
    await desk.put("handbook", "v2")
    backend.script = says("old", X_Cache_KB="handbook@v1")
    for _ in range(2):
        answer = await client.chat(**KB)
        assert (answer.cache, answer.text, answer.get("x-cache-reason")) == ("MISS", "old", "other_version")
    backend.script = says("new", X_Cache_KB="handbook@v2")
    await client.chat(**KB)
    assert (await client.chat(**KB)).text == "new"


async def test_the_backend_says_what_an_answer_depends_on(client, desk, backend):
    backend.script = says("x", X_Cache_KB="handbook@v1, other%20one")
    await client.chat()
    assert (await client.chat()).cache == "HIT"
    assert (await desk.put("other%20one", "2"))["purged"] == 1
    await client.chat()
    assert (await desk.put("handbook", "v2"))["purged"] == 1
    assert (await client.chat()).get("x-cache-reason") == "other_version"


async def test_a_version_that_the_request_declares_is_kept_under_that_alone(client, desk, backend):
    await desk.put("handbook", "v2")
    backend.script = says("old")
    await client.chat(X_Cache_KB="handbook@v1")
    assert (await client.chat(X_Cache_KB="handbook@v1")).cache == "HIT"
    backend.script = says("new")
    assert (await client.chat(**KB)).text == "new"


@pytest.mark.parametrize("known", [False, True])
async def test_a_backend_that_states_another_version_than_the_request_declared(client, desk, backend, known):
    """What it read is not what was asked for, be it the current version or not."""
    if known:
        await desk.put("handbook", "v2")
    backend.script = says("new", X_Cache_KB="handbook@v2")
    for _ in range(2):
        answer = await client.chat(X_Cache_KB="handbook@v1")
        assert (answer.cache, answer.get("x-cache-reason")) == ("MISS", "other_version")


async def test_a_version_left_off_half_way_is_made_up_for_by_the_next(client, desk, proxy, backend, monkeypatch):
    """Of the first the purge failed, the second names another document: what the first made wrong is not served."""
    backend.script = says("old", Cache_Tag="doc:faq-7")
    await client.chat(**KB)
    carry_out = proxy.house.purge.carry_out

    async def fail(order):
        raise Trouble("no", "disk")

    monkeypatch.setattr(proxy.house.purge, "carry_out", fail)
    told = {"version": "v2", "changed_documents": ["faq-7"]}
    assert (await desk.call("PUT", "/admin/kb/handbook", told))[0] == 503
    monkeypatch.setattr(proxy.house.purge, "carry_out", carry_out)
    await desk.put("handbook", "v3", changed_documents=["faq-8"])
    assert (await client.chat(**KB)).cache == "MISS"


def numbered(number: int, *documents: str) -> dict:
    changed = {"changed_documents": list(documents)} if documents else {}
    return {**EVENT, "id": str(number), "data": {"version": f"v{number}", "sequence": number, **changed}}


@pytest.mark.parametrize("documents", [("faq-7",), ()])
async def test_what_a_version_that_came_late_made_wrong_falls(client, desk, backend, documents):
    """The one after it came first, and named the documents that it changed itself."""
    tags = {1: "doc:faq-7", 2: "doc:faq-8", 3: "doc:faq-9"}
    await desk.event(numbered(1))
    for seed, tag in tags.items():
        backend.script = says("old", Cache_Tag=tag)
        await client.chat(seed=seed, **KB)
    assert (await desk.event(numbered(3, "faq-8")))["purged"] == 1
    late = numbered(2, *documents)
    told = await desk.event(late)
    assert (told["course"], told["version"], told["purged"]) == ("outdated", "v3", 1 if documents else 2)
    left = [(await client.chat(seed=seed, Cache_Control="only-if-cached", **KB)).status for seed in tags]
    assert left == [504, 504, 200 if documents else 504]
    assert (await desk.event(late))["course"] == "repeated"
    if not documents:
        await client.chat(seed=1, **KB)
        assert (await desk.event({**late, "id": "another"}))["purged"] == 0, "all of it fell after that"


async def test_a_version_that_came_late_ends_what_was_left_off_half_way(client, desk, proxy, backend, monkeypatch):
    """What is acknowledged as outdated is older than a version that is in force, not than one that was to be."""
    await desk.event(numbered(1))
    backend.script = says("old", Cache_Tag="doc:faq-7")
    await client.chat(**KB)
    carry_out = proxy.house.purge.carry_out

    async def fail(order):
        raise Trouble("no", "disk")

    monkeypatch.setattr(proxy.house.purge, "carry_out", fail)
    assert (await desk.call("POST", "/admin/events", numbered(3)))[0] == 503
    assert (await desk.call("POST", "/admin/events", numbered(2, "faq-8")))[0] == 503
    monkeypatch.setattr(proxy.house.purge, "carry_out", carry_out)
    told = await desk.event(numbered(2, "faq-8"))
    assert (told["course"], told["version"]) == ("outdated", "v3")
    assert (await client.chat(**KB)).cache == "MISS"
    assert [row["settled"] for row in (await desk.call("GET", "/admin/kb"))[1]["kb"]] == [True]


async def test_what_failed_on_the_way_is_done_when_it_is_told_again(client, desk, proxy, monkeypatch):
    await client.chat(**KB)
    carry_out = proxy.house.purge.carry_out

    async def fail(order):
        raise Trouble("no", "disk")

    monkeypatch.setattr(proxy.house.purge, "carry_out", fail)
    status, told = await desk.call("PUT", "/admin/kb/handbook", {"version": "v2"})
    assert (status, told["error"]["code"]) == (503, "store_trouble")
    monkeypatch.setattr(proxy.house.purge, "carry_out", carry_out)
    told = await desk.put("handbook", "v2")
    assert (told["course"], told["purged"]) == ("published", 1)
    assert (await client.chat(**KB)).cache == "MISS"


async def test_where_versions_cannot_be_told_nothing_that_states_one_is_kept(client, proxy, backend, monkeypatch):
    async def fail():
        raise Trouble("no", "disk")

    monkeypatch.setattr(proxy.house.storage.registry, "versions", fail)
    backend.script = says("x", X_Cache_KB="handbook@v1")
    assert (await client.chat()).get("x-cache-reason") == "other_version"
    assert (await client.chat()).status == 200


async def test_versions_survive_a_restart(start, session, tmp_path):
    proxy = await start(store__data_dir=str(tmp_path))
    await Desk(session, proxy.admin).event()
    await proxy.running.stop()
    proxy = await start(store__data_dir=str(tmp_path))
    assert (await Desk(session, proxy.admin).event())["course"] == "repeated"


async def test_it_is_counted(client, desk, session, proxy):
    await desk.put("handbook", "v2")
    async with session.get(proxy.admin + "/metrics") as answer:
        assert 'cacheproxy_knowledge_versions_total{course="published"} 1.0' in await answer.text()


async def test_readers_at_full_speed_never_get_what_is_older_than_what_was_acknowledged(client, desk, backend):
    """The backend says the version that it answers from; streams and JSON alike."""
    current = acknowledged = 0

    async def script(exchange) -> None:
        seen = current
        await asyncio.sleep(0)
        await says(str(seen), X_Cache_KB=f"handbook@{seen}")(exchange)

    backend.script = script
    wrong: list[tuple[int, int]] = []
    read = 0
    done = False

    async def reader(number: int) -> None:
        nonlocal read
        while not done:
            least = acknowledged
            answer = await client.chat(seed=number % 5, **KB)
            read += 1
            if int(answer.text) < least:
                wrong.append((least, int(answer.text)))

    readers = [asyncio.create_task(reader(number)) for number in range(10)]
    for version in range(1, 21):
        current = version
        await desk.put("handbook", str(version))
        acknowledged = version
        target = read + 30
        await until(lambda target=target: read >= target)
    done = True
    await asyncio.gather(*readers)
    assert wrong == []
