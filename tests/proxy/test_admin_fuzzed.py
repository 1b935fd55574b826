"""The description of the admin API, read by a tool of others: requests that fit it, and such as do not, are answered as
it says: a status, a type of content and a shape that it names, never a 5xx; and nothing without a token."""

import asyncio

import pytest
from hypothesis import given

from cacheproxy.http.calls import CALLS
from tests.examples import NAMES, tries
from tests.proxy.doors import FULL
from tests.rig import Client

schemathesis = pytest.importorskip("schemathesis", exc_type=ModuleNotFoundError)

EACH = 12
"""Requests to each call, of each mode."""
AUTHORIZED = {"Authorization": f"Bearer {FULL}"}
LAST = ("POST", "/admin/drain")
"""After it nothing is answered."""
WANT_MORE = {("POST", "/admin/warm"), ("POST", "/admin/import"), ("POST", "/admin/replay")}
"""Calls that may refuse what fits the description: what their lines must be is more than a schema says."""


@schemathesis.serializer("application/x-ndjson")
def lines(_, value) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@pytest.fixture
async def proxy(spawn, session, tmp_path, monkeypatch):
    """A proxy of its own, with answers in it."""
    for told in NAMES:
        monkeypatch.delenv(told, raising=False)
    proxy = await spawn("--data-dir", str(tmp_path / "data"), CACHEPROXY_ADMIN__TOKEN=FULL)
    client = Client(proxy.base, session)
    for number in range(6):
        await client.chat(seed=number, stream=number % 2 > 0, X_Cache_Tags=f"a{number}", X_Cache_KB="b@1")
    return proxy


@pytest.fixture
async def schema(proxy, session):
    async with session.get(f"{proxy.admin}/admin/openapi.json", headers=AUTHORIZED) as answer:
        return schemathesis.openapi.from_dict(await answer.json())


def send(proxy, schema, pair: tuple[str, str], mode, count: int) -> None:
    """Requests of one mode to one call, each answered as described."""
    operation = schema[pair[1]][pair[0]]
    # What is spoilt may be the token, which is sent all the same, or a query's unknown name, which is not looked at.
    unheld = [schemathesis.checks.negative_data_rejection]
    if pair in WANT_MORE:
        unheld.append(schemathesis.checks.positive_data_acceptance)

    @tries(count)
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case) -> None:
        case.call_and_validate(proxy.admin, headers=AUTHORIZED, excluded_checks=unheld)

    check()


def spoilable(pair: tuple[str, str]) -> bool:
    """Whether there is anything in such a request that could be wrong."""
    return bool(CALLS[pair].given or CALLS[pair].body is not None or "{" in pair[1])


@pytest.mark.parametrize("mode", schemathesis.GenerationMode)
async def test_every_call_answers_as_it_is_described(proxy, schema, mode):
    assert {(one.ok().method.upper(), one.ok().path) for one in schema.get_all_operations()} == CALLS.keys()
    for pair in sorted(CALLS.keys() - {LAST}):
        if mode is schemathesis.GenerationMode.POSITIVE or spoilable(pair):
            await asyncio.to_thread(send, proxy, schema, pair, mode, EACH)
    await asyncio.to_thread(send, proxy, schema, LAST, schemathesis.GenerationMode.POSITIVE, 1)
    assert "Traceback" not in proxy.output()
    assert " ERROR " not in proxy.output()
