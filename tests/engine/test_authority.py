"""Who may be served from the cache: only whom the backend has accepted, and for how long that holds."""

import asyncio
import json

import pytest

from cacheproxy.engine.authority import AHEAD, Authority, Grant
from tests.engine.fakes import Hands
from tests.fakes.backend import chunk, completion
from tests.rig import BODY, CHAT, Client, until

TTL, GRACE = 300.0, 3600.0
A, B = b"a" * 16, b"b" * 16
FIELDS = ((b"Authorization", b"Bearer A"),)
NEVER = float("-inf")


class Probe:
    """The backend, asked for one credential. `status` None: it cannot be asked. `gate` closed: it takes its time."""

    def __init__(self, status: int | None = 200) -> None:
        self.status = status
        self.asked: list[object] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, fields) -> int | None:
        self.asked.append(fields)
        await self.gate.wait()
        return self.status


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def probe() -> Probe:
    return Probe()


@pytest.fixture
def authority(probe, clock) -> Authority:
    return Authority(probe, clock, TTL, GRACE)


async def test_who_was_never_accepted_is_asked_for(authority, probe, clock):
    """Without an acceptance there is no grant; the backend is asked with that very credential."""
    probe.status = 401
    assert await authority.admit(A, FIELDS, NEVER) is None
    assert probe.asked == [FIELDS]
    clock.move(1)
    probe.status = 200
    assert await authority.admit(A, FIELDS, NEVER) == Grant(A)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
async def test_an_accepted_call_is_a_grant_within_its_time(authority, probe, clock, status):
    """No question to the backend while an acceptance is fresh, up to the moment from which it asks ahead."""
    authority.heard(A, status, proves=True)
    clock.move(AHEAD * TTL)
    assert await authority.admit(A, FIELDS, NEVER) == Grant(A)
    assert probe.asked == []


@pytest.mark.parametrize("status", [400, 404, 422, 429, 500, 502, 503])
async def test_another_status_proves_nothing(authority, probe, status):
    """An error that is no refusal neither accepts nor revokes."""
    authority.heard(A, status, proves=True)
    probe.status = None
    assert await authority.admit(A, FIELDS, NEVER) is None
    authority.heard(A, 200, proves=True)
    authority.heard(A, status, proves=True)
    assert await authority.admit(A, FIELDS, NEVER) == Grant(A)


async def test_a_call_that_needs_no_credential_proves_nothing(authority, probe):
    """A success on a path that may be open to everybody is no acceptance."""
    authority.heard(A, 200, proves=False)
    probe.status = None
    assert await authority.admit(A, FIELDS, NEVER) is None


async def test_one_credentials_verdict_is_not_anothers(authority, probe):
    """B30: verdicts are kept apart."""
    authority.heard(A, 200, proves=True)
    probe.status = 401
    assert await authority.admit(B, FIELDS, NEVER) is None
    assert await authority.admit(A, FIELDS, NEVER) == Grant(A)
    authority.heard(B, 401, proves=True)
    assert await authority.admit(A, FIELDS, NEVER) == Grant(A)


async def test_an_entry_of_its_own_is_an_acceptance_of_its_age(authority, probe, clock):
    """After a restart the age of the entry itself says when the backend accepted its owner."""
    assert await authority.admit(A, FIELDS, clock.now() - 10) == Grant(A)
    assert probe.asked == []
    probe.status = 401
    assert await authority.admit(B, FIELDS, clock.now() - TTL) is None
    assert len(probe.asked) == 1


async def test_an_older_entry_does_not_make_an_acceptance_older(authority, probe, clock):
    authority.heard(A, 200, proves=True)
    assert await authority.admit(A, FIELDS, clock.now() - 2 * TTL) == Grant(A)
    assert probe.asked == []


async def test_while_in_use_it_is_proven_ahead_of_time(authority, probe, clock):
    """From 80 % of its time on the backend is asked beside the hit, once, and the caller does not wait for it."""
    authority.heard(A, 200, proves=True)
    probe.gate.clear()
    clock.move(AHEAD * TTL + 1)
    for _ in range(5):
        assert await asyncio.wait_for(authority.admit(A, FIELDS, NEVER), 5) == Grant(A)
    await until(lambda: len(probe.asked) == 1)
    probe.gate.set()
    await until(lambda: "0 proofs" in repr(authority))
    clock.move(AHEAD * TTL - 1)
    assert await authority.admit(A, FIELDS, NEVER) == Grant(A)
    assert len(probe.asked) == 1, "the proof began a new time"


async def test_a_refusal_ahead_of_time_ends_the_grant(authority, probe, clock):
    authority.heard(A, 200, proves=True)
    probe.status = 401
    clock.move(AHEAD * TTL + 1)
    assert await authority.admit(A, FIELDS, NEVER) == Grant(A)
    await until(lambda: "0 proofs" in repr(authority))
    assert await authority.admit(A, FIELDS, NEVER) is None


async def test_expired_it_is_proven_before_the_hit(authority, probe, clock):
    """At the end of its time nothing is served until the backend has said yes again."""
    authority.heard(A, 200, proves=True)
    clock.move(TTL)
    probe.gate.clear()
    waiting = asyncio.create_task(authority.admit(A, FIELDS, NEVER))
    await until(lambda: probe.asked)
    assert not waiting.done()
    probe.gate.set()
    assert await waiting == Grant(A)
    assert await authority.admit(A, FIELDS, NEVER) == Grant(A)
    assert len(probe.asked) == 1


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("proves", [True, False])
async def test_a_refusal_of_any_call_revokes_at_once(authority, probe, clock, status, proves):
    """Also on a call that would have proven nothing; entries made before do not bring the grant back."""
    authority.heard(A, 200, proves=True)
    clock.move(1)
    authority.heard(A, status, proves=proves)
    probe.status = None
    assert await authority.admit(A, FIELDS, clock.now() - 0.5) is None
    clock.move(1)
    authority.heard(A, 200, proves=True)
    assert await authority.admit(A, FIELDS, NEVER) == Grant(A)


async def test_a_refusal_at_the_same_moment_wins(authority, probe):
    """Where the clock cannot tell which came last, nothing is served."""
    authority.heard(A, 200, proves=True)
    authority.heard(A, 401, proves=True)
    probe.status = None
    assert await authority.admit(A, FIELDS, NEVER) is None


@pytest.mark.parametrize("status", [None, 404, 405, 429, 500, 503])
async def test_while_the_backend_cannot_be_asked_the_last_verdict_holds_for_the_grace(authority, probe, clock, status):
    """Unreachable, or without such a path: served until the grace is over, then not."""
    authority.heard(A, 200, proves=True)
    probe.status = status
    clock.move(GRACE - 1)
    assert await authority.admit(A, FIELDS, NEVER) == Grant(A)
    clock.move(1)
    assert await authority.admit(A, FIELDS, NEVER) is None


async def test_the_grace_revives_no_refused_credential(authority, probe, clock):
    authority.heard(A, 200, proves=True)
    clock.move(TTL)
    probe.status = 403
    assert await authority.admit(A, FIELDS, NEVER) is None
    probe.status = None
    assert await authority.admit(A, FIELDS, NEVER) is None


@pytest.mark.parametrize(("ttl", "grace"), [(0.0, 0.0), (300.0, 0.0), (0.0, 3600.0)])
async def test_a_fresh_yes_is_a_grant_whatever_the_times(probe, clock, ttl, grace):
    """B40: 0 has a meaning: no time without a proof, no grace. What the backend has accepted just now is served."""
    authority = Authority(probe, clock, ttl, grace)
    assert await authority.admit(A, FIELDS, clock.now() - 1000) == Grant(A)
    assert len(probe.asked) == 1


async def test_many_callers_wait_for_one_proof(authority, probe, clock):
    authority.heard(A, 200, proves=True)
    clock.move(TTL)
    probe.gate.clear()
    waiting = [asyncio.create_task(authority.admit(A, FIELDS, NEVER)) for _ in range(20)]
    await until(lambda: probe.asked)
    await asyncio.sleep(0)
    probe.gate.set()
    assert await asyncio.gather(*waiting) == [Grant(A)] * 20
    assert len(probe.asked) == 1


@pytest.mark.parametrize("leavers", [[0], [0, 1, 2, 3, 4], [3]])
async def test_a_caller_that_leaves_does_not_end_the_proof(authority, probe, clock, leavers):
    """B57: the first or any other caller is cancelled; who stays is served, and who comes later needs no new proof."""
    authority.heard(A, 200, proves=True)
    clock.move(TTL)
    probe.gate.clear()
    waiting = [asyncio.create_task(authority.admit(A, FIELDS, NEVER)) for _ in range(5)]
    await until(lambda: probe.asked)
    for number in leavers:
        waiting[number].cancel()
    results = await asyncio.gather(*(waiting[n] for n in leavers), return_exceptions=True)
    assert all(isinstance(r, asyncio.CancelledError) for r in results)
    probe.gate.set()
    stayed = [task for number, task in enumerate(waiting) if number not in leavers]
    assert await asyncio.gather(*stayed) == [Grant(A)] * len(stayed)
    await until(lambda: "0 proofs" in repr(authority))
    assert await authority.admit(A, FIELDS, NEVER) == Grant(A)
    assert len(probe.asked) == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_ends_after_a_refusal_does_not_undo_it(start, backend, session, stream):
    """The backend accepted the call when it began and has refused the credential since: what is stored at its end is
    no acceptance of a later time."""
    proxy = await start()
    client = Client(proxy.base, session)
    gate, refusing = asyncio.Event(), False

    async def script(exchange) -> None:
        if refusing:
            await exchange.json({"error": {"message": "revoked"}}, "401 Unauthorized")
        elif stream:
            await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
            await exchange.chunk(chunk({"role": "assistant", "content": "Hello."}))
            await gate.wait()
            await exchange.chunk(chunk(finish="stop") + b"data: [DONE]\n\n")
            await exchange.end()
        else:
            body = json.dumps(completion()).encode()
            await exchange.head(Content_Type="application/json", Content_Length=str(len(body)))
            await exchange.send(body[:10])
            await gate.wait()
            await exchange.send(body[10:])

    backend.script = script
    first = {**BODY, "stream": stream}
    headers = {"Authorization": "Bearer A"}
    async with session.post(proxy.base + CHAT, json=first, headers=headers) as answer:
        assert answer.status == 200
        refusing = True
        assert (await client.send({**BODY, "model": "other"})).status == 401
        gate.set()
        await answer.read()
    await until(lambda: proxy.house.store.census().entries == 1)
    again = await client.send(first)
    assert (again.status, again.cache) == (401, "MISS")
