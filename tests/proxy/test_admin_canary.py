"""What is sent to an admin call may have words of prompts in it. None of them is in a refusal, in a log, or in a metric,
wherever it stood; the audit log has what its own table names, and nothing else."""

import itertools
import json
import logging
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from cacheproxy.http.audit import ASKED
from cacheproxy.http.calls import CALLS
from tests.fakes.embedder import Chosen
from tests.proxy.doors import FULL, READ, Caller
from tests.proxy.schema import Schemas
from tests.rig import raw

CANARY = "canary-7f3e"
TEXTS = (CANARY, f"Say {CANARY}\r\n\u202e{CANARY}", f"{CANARY}\udc80" * 300)
"""As it is, with what a log could stumble over, and too long and no UTF-8 besides."""
LAST = ("POST", "/admin/drain")
MADE = 20
"""Bodies of each call that it is put into."""


@pytest.fixture
async def proxy(start):
    return await start(embedder=Chosen(), admin__token=FULL, admin__read_token=READ)


@pytest.fixture
async def document(proxy, session) -> dict:
    return (await Caller(session, proxy.admin, FULL).get("/admin/openapi.json"))[1]


def places(value: Any, at: tuple = ()) -> Iterator[tuple]:
    """Where in a document something stands."""
    yield at
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in members:
        yield from places(one, (*at, name))


def placed(value: Any, at: tuple, text: str) -> Any:
    """The document with the text there."""
    if not at:
        return text
    if isinstance(value, dict):
        return {**value, at[0]: placed(value[at[0]], at[1:], text)}
    return [*value[: at[0]], placed(value[at[0]], at[1:], text), *value[at[0] + 1 :]]


def bodies(schemas: Schemas, operation: dict, dice: random.Random) -> Iterator[tuple[str, bytes, tuple]]:
    """Bodies with the canary: their type, their bytes, and where it stands."""
    for kind, told in operation.get("requestBody", {"content": {}})["content"].items():
        for _ in range(MADE):
            made = schemas.made(told["schema"], dice)
            for at, text in itertools.product(places(made), TEXTS):
                yield kind, json.dumps(placed(made, at, text)).encode(), at
        for data in (CANARY, f'{{"{CANARY}', f'"{CANARY}"', f'{{"a": {CANARY}}}', f'{{"x": "{CANARY}"}}\n{CANARY}\n'):
            yield kind, data.encode(), ()


@pytest.mark.parametrize("pair", [pair for pair in CALLS if pair != LAST], ids=" ".join)
async def test_no_word_of_a_body_is_in_a_refusal_or_in_a_log(proxy, session, document, caplog, pair):
    caplog.set_level(logging.DEBUG)
    admin, dice, refusals = Caller(session, proxy.admin, FULL), random.Random(1), 0
    names = ASKED.get(pair[1], ())
    operation = document["paths"][pair[1]][pair[0].lower()]
    path = pair[1].replace("{id}", "0" * 32).replace("{name}", "a")
    for kind, data, at in bodies(Schemas(document), operation, dice):
        status, told = await admin.call(pair[0], path, data=data, Content_Type=kind)
        refusals += status >= 400
        assert status < 400 or CANARY not in json.dumps(told), (data, told)
        logged = [record for record in caplog.records if CANARY in record.getMessage()]
        if at and at[0] in names:
            logged = [record for record in logged if record.name != "cacheproxy.audit"]
        assert [record.getMessage() for record in logged] == [], data
        caplog.clear()
    assert refusals or not operation.get("requestBody")
    for read in ("/metrics", "/admin/stats", "/admin/config"):
        assert CANARY not in json.dumps((await admin.get(read))[1], default=repr)


@pytest.mark.parametrize("pair", [pair for pair in CALLS if pair != LAST], ids=" ".join)
async def test_no_word_of_a_path_or_a_field_is_in_a_refusal(proxy, session, caplog, pair):
    """With a token and without."""
    caplog.set_level(logging.DEBUG)
    target = pair[1].replace("{id}", CANARY).replace("{name}", CANARY)
    targets = [target, f"{target}/{CANARY}", f"{target}?{CALLS[pair].given and next(iter(CALLS[pair].given))}={CANARY}"]
    for token in (FULL, READ, None, CANARY):
        admin = Caller(session, proxy.admin, token)
        for one in targets:
            fields = {"X-Lookup-X": CANARY, "Cookie": CANARY, "ce-type": CANARY, "Content-Encoding": CANARY}
            for name, value in fields.items():
                status, told = await admin.call(pair[0], quote(one, safe="/?=&"), data=b"{}", **{name: value})
                message = told["error"]["message"] if status >= 400 else ""
                assert CANARY not in message, (one, name, told)
    logged = [r.getMessage() for r in caplog.records if r.name != "cacheproxy.audit" and CANARY in r.getMessage()]
    assert logged == []


async def test_no_word_of_what_is_no_request_is_in_a_refusal(proxy, caplog):
    caplog.set_level(logging.DEBUG)
    port = int(proxy.admin.rsplit(":", 1)[1])
    for line in ("POST /admin/purge HTTP/9.9", f"{CANARY} /admin/kb HTTP/1.1", f"GET /{CANARY}\0 HTTP/1.1"):
        head = f"{line}\r\nHost: x\r\nConnection: close\r\nX: {CANARY}\0\r\n\r\n{CANARY}"
        assert CANARY.encode() not in await raw(port, head.encode())
    assert CANARY not in caplog.text
