"""Samples: which are taken, when, how many, what they cost, and what is told of them. With the engine's real parts before
a scripted backend."""

import asyncio
import json
from dataclasses import replace

import pytest

from cacheproxy.core.agreement import Agreement
from cacheproxy.core.model import Endpoint
from cacheproxy.core.rules import Mode
from cacheproxy.engine import sampler as module
from cacheproxy.engine.asker import Asker
from cacheproxy.engine.bound import Head
from cacheproxy.engine.evidence import Candidate
from cacheproxy.engine.fill import Fill
from cacheproxy.engine.promotion import Promotion
from cacheproxy.engine.sampler import Sampler, Sampling
from cacheproxy.engine.witnesses import GuardedWitnesses
from cacheproxy.stores.witnesses import LocalWitnesses
from tests.engine.fakes import Notes
from tests.fakes.backend import chunk, completion, gives
from tests.rig import CHAT, Client, until

ASKED = {"model": "m", "messages": [{"role": "user", "content": "How do I get a new one?"}]}
AGREE, DIFFER, UNKNOWN = Agreement.AGREE, Agreement.DIFFER, Agreement.UNKNOWN


class Ear:
    """Takes two answers for the same if they are to the letter, and keeps what it is told."""

    era = 0

    def __init__(self) -> None:
        self.told: list[tuple[Candidate, bytes, Agreement]] = []

    async def same(self, entry, one, other) -> Agreement:
        said = [json.loads(answer.body)["choices"] for answer in (one, other)]
        return AGREE if said[0] == said[1] else DIFFER

    async def compare(self, entry, answer) -> Agreement:
        return await self.same(entry, entry.answer, answer)

    async def conclude(self, asked, candidate, own, credential, verdict) -> None:
        self.told.append((candidate, credential, verdict))

    @property
    def verdicts(self) -> list[Agreement]:
        return [verdict for _, _, verdict in self.told]


class Rig:
    """A sampler before the backend of a proxy, whose cached answer is what was served."""

    def __init__(self, proxy, client, backend) -> None:
        self.proxy, self.client, self.backend = proxy, client, backend
        self.ear, self.notes = Ear(), Notes()
        self.fill = Fill(self.notes)
        self.running = 1
        self.looked = 0
        self.promotion: Promotion | None = None
        producer = proxy.house.engine.flights._producer
        self.asker = Asker(
            sender=producer._sender, keeper=producer._keeper, authority=producer._authority,
            ledger=producer._ledger, clock=proxy.house.clock,
        )  # fmt: skip

    def look(self) -> int:
        """How many requests are running; counted how often it was asked."""
        self.looked += 1
        return self.running

    def sampler(self, share: float = 1.0, calls: int = 100, tokens: int = 10**6, draw=lambda: 0.5) -> Sampler:
        return Sampler(
            asker=self.asker, evidence=self.ear, fill=self.fill, journal=self.notes, clock=self.proxy.house.clock,
            sampling=Sampling(share, calls, tokens), running=self.look, promotion=self.promotion, draw=draw,
        )  # fmt: skip

    def bound(self, body=ASKED, key: str = "A", **lines: str):
        binder = self.proxy.house.engine.binder
        fields = (
            (b"Host", b"x"), (b"Content-Type", b"application/json"), (b"Authorization", f"Bearer {key}".encode()),
            *((name.replace("_", "-").encode(), value.encode()) for name, value in lines.items()),
        )  # fmt: skip
        head = Head("POST", CHAT.encode(), fields, binder.credential(fields))
        return binder.bind(head, Endpoint.CHAT, json.dumps(body).encode())

    async def served(self, text: str = "Press it.") -> Candidate:
        """What was served: the stored answer to a question like the one of `bound`."""
        self.backend.script = gives(completion(text))
        like = {**ASKED, "messages": [{"role": "user", "content": "How can I get a new one?"}]}
        await self.client.chat(like)
        self.backend.seen.clear()
        entry = await self.proxy.house.store.get(self.bound(like).ask.key)
        return Candidate(entry, 0.95, "How can I get a new one?", counts=True)

    async def quiet(self) -> None:
        await until(lambda: not self.fill._tasks, what="the end of the samples")

    def skipped(self) -> int:
        return self.notes.counted.count(("semantic_samples", "skipped"))


@pytest.fixture
async def rig(start, session, backend):
    proxy = await start()
    made = Rig(proxy, Client(proxy.base, session), backend)
    yield made
    await made.fill.close(0.0)


async def test_a_sample_is_the_callers_own_request_and_its_answer_is_kept(rig):
    candidate = await rig.served()
    bound = rig.bound(X_Cache_Semantic="0.95", key="B")
    rig.sampler().offer(bound, candidate)
    assert rig.backend.seen == [], "not while the caller is being answered"
    await rig.quiet()
    (seen,) = rig.backend.seen
    assert (seen.target, seen.json) == (CHAT.encode(), ASKED)
    assert seen.get(b"authorization") == b"Bearer B"
    assert seen.get(b"x-cache-semantic") is None
    assert rig.ear.told == [(candidate, bound.ask.credential, AGREE)]
    again = await rig.client.chat(ASKED, key="B")
    assert (again.cache, again.text) == ("HIT", "Press it.")
    assert (await rig.client.chat(ASKED, key="A")).cache == "MISS"


async def test_the_caller_comes_first(rig, monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 1000.0)
    rig.sampler().offer(rig.bound(), await rig.served())
    assert (await rig.client.chat({**ASKED, "seed": 1})).status == 200
    assert len(rig.backend.seen) == 1


async def test_as_a_stream_where_the_caller_asked_for_one(rig, monkeypatch):
    candidate = await rig.served()

    async def stream(exchange):
        await exchange.events(chunk({"role": "assistant", "content": "Press it."}), chunk(finish="stop"))

    rig.backend.script = stream
    monkeypatch.setattr(rig.ear, "compare", lambda entry, answer: asyncio.sleep(0, AGREE))
    rig.sampler().offer(rig.bound({**ASKED, "stream": True}), candidate)
    await rig.quiet()
    assert rig.ear.verdicts == [AGREE]


@pytest.mark.parametrize(
    ("script", "verdict", "calls"),
    [
        ([completion("Press it.")], AGREE, 1),
        ([completion("Never."), completion("Never.")], DIFFER, 2),
        ([completion("Never."), completion("Ever.")], UNKNOWN, 2),
        ([completion("Never."), completion("Press it.")], UNKNOWN, 2),
        ([completion("Never."), b"junk"], DIFFER, 2),
        ([b"junk"], UNKNOWN, 1),
        ([completion("Press it.", choices=[])], UNKNOWN, 1),
    ],
)
async def test_what_differs_is_asked_once_more(rig, script, verdict, calls):
    """A question that has another answer each time tells nothing; nor does an answer that does not come."""
    candidate = await rig.served()
    left = list(script)

    async def answers(exchange):
        await exchange.json(left.pop(0))

    rig.backend.script = answers
    rig.sampler().offer(rig.bound(), candidate)
    await rig.quiet()
    assert rig.ear.verdicts == [verdict]
    assert len(rig.backend.seen) == calls


@pytest.mark.parametrize("status", ["401 Unauthorized", "500 Internal Server Error"])
async def test_an_error_tells_nothing_and_a_refusal_is_heeded(rig, status):
    candidate = await rig.served()

    async def refuses(exchange):
        await exchange.json({"error": {"message": "no"}}, status)

    rig.backend.script = refuses
    bound = rig.bound()
    rig.sampler().offer(bound, candidate)
    await rig.quiet()
    assert rig.ear.verdicts == [UNKNOWN]
    authority = rig.asker._authority
    verdict = authority._verdicts[bound.ask.credential]
    assert (verdict.refused_at > float("-inf")) == status.startswith("401")


async def test_a_backend_that_is_gone_or_breaks_off_tells_nothing(rig):
    candidate = await rig.served()

    async def cuts(exchange):
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        exchange.cut()

    rig.backend.script = cuts
    rig.sampler().offer(rig.bound(), candidate)
    await rig.quiet()
    assert rig.ear.verdicts == [UNKNOWN]
    await rig.backend.stop()
    rig.sampler().offer(rig.bound(), candidate)
    await rig.quiet()
    assert rig.ear.verdicts == [UNKNOWN] * 2
    assert rig.proxy.house.engine.budget.held == 0


async def test_a_share_is_taken(rig):
    candidate = await rig.served()
    drawn = iter([0.0, 0.0099, 0.01, 0.5, 0.999])
    sampler = rig.sampler(share=0.01, draw=lambda: next(drawn))
    for _ in range(5):
        sampler.offer(rig.bound(), candidate)
    await rig.quiet()
    assert len(rig.ear.told) == 2
    sampler = rig.sampler(share=0.0, draw=lambda: 0.0)
    sampler.offer(rig.bound(), candidate)
    assert rig.fill._tasks == set()


async def test_who_wants_nothing_of_the_backend_is_not_sampled(rig):
    candidate = await rig.served()
    bound = rig.bound(Cache_Control="only-if-cached")
    assert bound.controls.only_if_cached
    rig.sampler().offer(bound, candidate)
    assert rig.fill._tasks == set()


async def test_one_at_a_time_and_only_in_a_quiet_moment(rig):
    candidate = await rig.served()
    gate, most, now = asyncio.Event(), 0, 0

    async def slow(exchange):
        nonlocal most, now
        now += 1
        most = max(most, now)
        await gate.wait()
        await exchange.json(completion("Press it."))
        now -= 1

    rig.backend.script = slow
    rig.running = module.QUIET + 1
    sampler = rig.sampler()
    for number in range(4):
        sampler.offer(rig.bound({**ASKED, "seed": number}), candidate)
    await until(lambda: rig.looked >= 3)
    assert rig.backend.seen == []
    rig.running = module.QUIET
    await until(lambda: len(rig.backend.seen) == 1)
    gate.set()
    await rig.quiet()
    assert (len(rig.ear.told), most) == (4, 1)


async def test_who_waits_too_long_or_in_too_long_a_row_is_let_go(rig, monkeypatch):
    candidate = await rig.served()
    rig.running = module.QUIET + 1
    sampler = rig.sampler()
    for _ in range(module.WAITING + 3):
        sampler.offer(rig.bound(), candidate)
    assert rig.skipped() == 3
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    await rig.quiet()
    assert rig.skipped() == module.WAITING + 3
    assert (rig.ear.told, rig.backend.seen) == ([], [])
    assert "0 waiting" in repr(sampler)


@pytest.mark.parametrize(("calls", "tokens", "made"), [(2, 10**6, 2), (100, 7, 1), (100, 8, 2), (0, 10, 0)])
async def test_no_more_than_the_budget(rig, calls, tokens, made):
    """An answer of the scripted backend has 7 tokens."""
    candidate = await rig.served()
    sampler = rig.sampler(calls=calls, tokens=tokens)
    for _ in range(4):
        sampler.offer(rig.bound(), candidate)
    await rig.quiet()
    assert (len(rig.backend.seen), rig.skipped()) == (made, 4 - made)


async def test_what_was_served_under_another_threshold_tells_nothing_of_this_one(rig):
    """A burst of wrong answers is evidence for one step, not for several."""
    candidate = await rig.served()
    sampler = rig.sampler()
    sampler.offer(rig.bound(), candidate)
    rig.ear.era = 1
    sampler.offer(rig.bound(), candidate)
    await rig.quiet()
    assert (len(rig.ear.told), len(rig.backend.seen), rig.skipped()) == (1, 1, 1)


async def test_what_comes_when_the_last_is_done_is_not_forgotten(rig, monkeypatch):
    """In the very moment in which the work ends."""
    candidate = await rig.served()
    sampler = rig.sampler()
    conclude = rig.ear.conclude

    async def then(*told):
        await conclude(*told)
        if len(rig.ear.told) == 1:
            asyncio.get_running_loop().call_soon(sampler.offer, rig.bound(), candidate)

    monkeypatch.setattr(rig.ear, "conclude", then)
    sampler.offer(rig.bound(), candidate)
    await until(lambda: len(rig.ear.told) == 2)


async def test_without_room_for_a_second_call_the_first_decides(rig):
    candidate = await rig.served()
    rig.backend.script = gives(completion("Never."))
    rig.sampler(calls=1).offer(rig.bound(), candidate)
    await rig.quiet()
    assert (rig.ear.verdicts, len(rig.backend.seen)) == ([DIFFER], 1)


@pytest.mark.parametrize("lines", [{"X_Cache_TTL": "0"}, {}])
async def test_what_is_not_to_be_kept_is_compared_all_the_same(rig, lines):
    candidate = await rig.served()
    bound = rig.bound(**lines)
    if not lines:
        bound = replace(bound, mode=Mode.READ_ONLY)
    rig.sampler().offer(bound, candidate)
    await rig.quiet()
    assert rig.ear.verdicts == [AGREE]
    assert await rig.proxy.house.store.get(bound.ask.key) is None


async def test_an_end_in_the_midst_leaves_nothing_behind(rig):
    candidate = await rig.served()

    async def hangs(exchange):
        await exchange.head(Content_Type="application/json", Content_Length="100")
        await exchange.gone()

    rig.backend.script = hangs
    sampler = rig.sampler()
    sampler.offer(rig.bound(), candidate)
    await until(lambda: rig.backend.seen)
    await rig.fill.close(0.0)
    assert rig.ear.told == []
    assert rig.proxy.house.engine.budget.held == 0
    await until(lambda: "at work" not in repr(sampler))
    rig.backend.script = gives(completion("Press it."))
    sampler.offer(rig.bound(), candidate)
    await rig.quiet()
    assert rig.ear.verdicts == [AGREE], "it goes on"


# --- witnesses -----------------------------------------------------------------------------------------------------


async def exact(rig, text: str = "Press it.") -> Candidate:
    return replace(await rig.served(text), similarity=None, stored="", counts=False)


async def test_an_exact_hit_of_another_may_make_a_witness_and_the_answer_stays(rig, monkeypatch):
    kept = LocalWitnesses(rig.proxy.house.clock)
    guarded = GuardedWitnesses(kept, 30.0, rig.notes)
    rig.promotion = Promotion(guarded, rig.notes, 2)
    candidate = await exact(rig)
    sampler, same, other = rig.sampler(), rig.bound(key="A"), rig.bound(key="B")
    other = replace(other, ask=replace(other.ask, key=candidate.entry.key))
    sampler.offer(same, candidate)
    assert rig.fill._tasks == set(), "who fetched it confirms nothing"
    sampler.offer(other, candidate)
    await rig.quiet()
    assert rig.ear.told == [(candidate, other.ask.credential, AGREE)]
    assert await rig.proxy.house.store.get(candidate.entry.key) == candidate.entry, "it is not replaced"
    sampler.offer(other, candidate)
    await rig.promotion.confirm(candidate.entry, other.ask.credential)
    await rig.quiet()
    assert len(rig.backend.seen) == 1, "nobody is asked once there are enough"
    sampler.offer(rig.bound(key="C"), candidate)
    assert rig.fill._tasks == set()
    await guarded.close()


async def test_without_witnesses_an_exact_hit_is_no_sample(rig):
    rig.sampler().offer(rig.bound(key="B"), await exact(rig))
    assert rig.fill._tasks == set()


async def test_what_is_never_found_by_meaning_needs_no_witness(rig):
    guarded = GuardedWitnesses(LocalWitnesses(rig.proxy.house.clock), 30.0, rig.notes)
    rig.promotion = Promotion(guarded, rig.notes, 2)
    candidate = await exact(rig)
    document = completion("x")
    document["choices"][0]["message"]["tool_calls"] = [{"id": "c", "type": "function", "function": {"name": "f"}}]
    answer = replace(candidate.entry.answer, body=json.dumps(document).encode())
    rig.sampler().offer(rig.bound(key="B"), replace(candidate, entry=replace(candidate.entry, answer=answer)))
    assert rig.fill._tasks == set()
    await guarded.close()
