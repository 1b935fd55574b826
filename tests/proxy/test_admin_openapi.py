"""The description of the admin API is true: what it says is there, what is there it says, and whatever is sent has an
answer of the shape that it states."""

import json
import random
import re
from urllib.parse import quote, urlencode

import pytest

from cacheproxy.http.calls import CALLS
from tests.fakes.embedder import Chosen
from tests.proxy.doors import FULL, Caller
from tests.proxy.schema import JUNK, Schemas, spoiled, text
from tests.rig import Client

METHODS = {"get", "put", "post", "delete"}


@pytest.fixture
async def proxy(start):
    return await start(embedder=Chosen(), admin__token=FULL)


@pytest.fixture
def admin(proxy, session) -> Caller:
    return Caller(session, proxy.admin, FULL)


@pytest.fixture
async def document(admin) -> dict:
    status, told = await admin.get("/admin/openapi.json")
    assert status == 200
    return told


def operations(document: dict) -> dict[tuple[str, str], dict]:
    return {(m.upper(), path): op for path, item in document["paths"].items() for m, op in item.items()}


async def test_it_describes_every_call(document):
    assert document["openapi"].startswith("3.1.")
    assert operations(document).keys() == CALLS.keys()
    ids = [operation["operationId"] for operation in operations(document).values()]
    assert len(set(ids)) == len(ids)
    for (_, path), operation in operations(document).items():
        assert operation["summary"] and operation["responses"]
        placed = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"}
        assert placed == {part.strip("{}") for part in path.split("/") if part.startswith("{")}
    assert all(set(item) <= METHODS for item in document["paths"].values())


async def test_every_reference_in_it_leads_somewhere(document):
    known = document["components"]["schemas"]
    told = json.dumps(document)
    names = {part.partition('"')[0] for part in told.split('"#/components/schemas/')[1:]}
    assert names == known.keys()


class Checked:
    """Makes calls, and holds what comes to the description."""

    def __init__(self, document: dict, admin: Caller) -> None:
        self._operations, self.schemas, self._admin = operations(document), Schemas(document), admin
        self.statuses: dict[tuple[str, str], set[int]] = {}

    async def call(self, pair: tuple[str, str], target: str, data: bytes | None, **headers: str) -> int:
        status, body = await self._admin.call(pair[0], target, data=data, **headers)
        self.statuses.setdefault(pair, set()).add(status)
        told = self._operations[pair]["responses"].get(str(status))
        assert told is not None, (pair, status, body)
        ((kind, content),) = told["content"].items()
        if kind == "application/json":
            misfit = self.schemas.misfit(content["schema"], body)
            assert misfit is None, (pair, status, misfit, body)
        return status

    def target(self, pair: tuple[str, str], ids: list[str], dice: random.Random) -> str:
        """A path with its parameters, good or not."""
        operation, path = self._operations[pair], pair[1]
        query = []
        for told in operation.get("parameters", ()):
            good = self.schemas.made(told["schema"], dice)
            if told["in"] == "path":
                value = dice.choice(ids) if told["name"] == "id" and dice.random() < 0.5 else f"a{good}"
                path = path.replace(f"{{{told['name']}}}", quote(value, safe=""))
            elif dice.random() < 0.4:
                value = good if dice.random() < 0.6 else dice.choice([str(dice.choice(JUNK)), text(dice)])
                query += [(told["name"], str(value))] * dice.choice([1, 1, 1, 2])
        return f"{path}?{urlencode(query)}" if query else path

    def body(self, pair: tuple[str, str], dice: random.Random) -> bytes | None:
        told = self._operations[pair].get("requestBody")
        if told is None:
            return None
        made = self.schemas.made(next(iter(told["content"].values()))["schema"], dice)
        turn = dice.random()
        if turn < 0.1:
            return dice.choice([b"", b"{", b"\xff", b"[" * 2000, b"\xef\xbb\xbf{}", b"nul", b"1e999", b'{"a":1,"a":2}'])
        return json.dumps(made if turn < 0.5 else spoiled(made, dice)).encode()


async def stored(client: Client, number: int) -> str:
    """The id of an answer that is there now."""
    asked = {"seed": number, "stream": number % 2 == 0, "X_Cache_Tags": "a", "X_Cache_KB": f"a@{number % 3}"}
    await client.chat(**asked)
    return (await client.chat(**asked)).get("x-cache-entry-id")


async def ordered(admin: Caller) -> str:
    """The id of a job that is known now."""
    return (await admin.post("/admin/replay", {"model": "m"}))[1]["id"]


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_is_sent_has_an_answer_of_the_shape_described(proxy, session, document, admin, seed):
    """Never a 500, always what the description says: of good input, of nearly good one, and of none."""
    dice, client = random.Random(seed), Client(proxy.base, session)
    checked = Checked(document, admin)
    pairs = [pair for pair in CALLS if pair not in {("POST", "/admin/drain"), ("POST", "/admin/import")}]
    for number in range(40):
        ids = [await stored(client, number), await ordered(admin)]
        for pair in dice.sample(pairs, len(pairs)):
            body = checked.body(pair, dice)
            if body and dice.random() < 0.5 and b'"entry_id": "' in body:
                body = re.sub(rb'"entry_id": "[^"]*"', b'"entry_id": "%b"' % ids[0].encode(), body)
            await checked.call(pair, checked.target(pair, ids, dice), body, X_Warm_Authorization="Bearer A")
    assert {pair: min(seen) for pair, seen in checked.statuses.items() if min(seen) >= 300} == {}
    assert checked.statuses["POST", "/admin/purge"] == {200, 400}
    assert checked.statuses["GET", "/admin/entries"] == {200, 400}


@pytest.mark.parametrize(
    ("headers", "data"),
    [({"Content-Encoding": "gzip"}, b"no gzip"), ({"Content-Encoding": "deflate"}, b"\x00"), ({"Content-Type": "x"}, b"{}"),
     ({"Content-Type": "multipart/form-data; boundary=x"}, b"--x"), ({"Content-Type": "\xff"}, b"{}"),
     ({"ce-type": "kb.version.published", "ce-id": "%ff", "ce-source": "\xe9"}, b"{}")],
)  # fmt: skip
async def test_whatever_the_body_is_said_to_be(document, admin, headers, data):
    checked = Checked(document, admin)
    for pair, call in CALLS.items():
        if call.body is not None:
            assert await checked.call(pair, pair[1].replace("{name}", "a"), data, **headers) != 500


async def test_a_body_that_is_too_large_is_refused(start, session, document):
    proxy = await start(limits__body_bytes=2000, limits__answer_bytes=1000)
    checked = Checked(document, Caller(session, proxy.admin))
    for pair, call in CALLS.items():
        if call.body is not None:
            assert await checked.call(pair, pair[1].replace("{name}", "a"), b'"' + b"x" * 3000 + b'"') == 413
