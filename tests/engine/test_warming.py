"""Asking within a budget: how much, for how long, how many at once, and with whose credential."""

import asyncio
import json

import pytest

from cacheproxy.engine import warming
from cacheproxy.engine.traffic import Line, lines, read
from cacheproxy.engine.warming import Budget, Said, Warming, fields_of, pause_of, tokens_of

CHAT = "/v1/chat/completions"


def line(number: int = 1, **headers: str) -> Line:
    return Line(number, CHAT, tuple((name.replace("_", "-"), value) for name, value in headers.items()), b"{}")


class Asking:
    """Says what it is told to, and notes what it was asked. `now`: a clock that each request moves on."""

    def __init__(self, *said: Said, each: float = 0.0) -> None:
        self.said, self.each = list(said) or [Said(200, reason="", tokens=7)], each
        self.asked: list[int] = []
        self.time, self.running, self.most = 0.0, 0, 0

    async def __call__(self, one: Line) -> Said:
        self.asked.append(one.number)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        self.time += self.each
        return self.said.pop(0) if len(self.said) > 1 else self.said[0]

    def now(self) -> float:
        return self.time


async def run(asking, number: int, *, concurrency: int = 1, done=lambda *_: None, **budget) -> warming.Result:
    made = Warming(asking, Budget(**budget), asking.now, done)
    await made.run([line(at) for at in range(1, number + 1)], concurrency)
    return made.result


@pytest.mark.parametrize("concurrency", [1, 3, 50])
@pytest.mark.parametrize("budget", [0, 1, 4, 20, 21])
async def test_no_more_reach_the_backend_than_the_budget_says(concurrency, budget):
    asking = Asking()
    result = await run(asking, 20, concurrency=concurrency, requests=budget)
    assert (len(asking.asked), result.left) == (min(budget, 20), max(0, 20 - budget))
    assert asking.most <= concurrency


async def test_those_that_failed_cost_the_budget_and_those_that_are_there_do_not():
    asking = Asking(Said(500), Said(200, present=True), Said(200, present=True), Said(200, reason="no_store"))
    result = await run(asking, 9, requests=3)
    assert (result.failed, result.present, result.asked, result.left) == ([(1, 500)], 2, 2, 4)


async def test_nothing_is_begun_after_the_time():
    asking = Asking(each=10.0)
    result = await run(asking, 9, seconds=25)
    assert (len(asking.asked), result.left) == (3, 6)


async def test_the_stop_is_at_the_tokens_and_those_that_run_are_waited_for():
    asking = Asking()
    result = await run(asking, 9, concurrency=2, tokens=7)
    assert (result.tokens, result.asked, result.left) == (14, 2, 7)


async def test_what_is_put_off_waits_as_long_as_it_is_told(monkeypatch):
    slept = []

    async def sleep(seconds: float, sleep=asyncio.sleep) -> None:
        slept.append(seconds)
        await sleep(0)

    asking = Asking(Said(429, pause=3.0), Said(503), Said(429, pause=1e6), Said(503, pause=0.0), Said(429))
    monkeypatch.setattr(warming.asyncio, "sleep", sleep)
    result = await run(asking, 1)
    assert [seconds for seconds in slept if seconds] == [3.0, 2, warming.LONGEST_PAUSE]
    assert (len(asking.asked), result.failed) == (warming.ATTEMPTS, [(1, 429)])


async def test_what_is_over_is_told_as_it_comes():
    told = []
    asking = Asking(Said(200, reason=""), Said(0), Said(200, present=True))
    await run(asking, 3, done=lambda one, whole: told.append((one.number, whole)))
    assert told == [(1, True), (2, False), (3, True)]


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_a_fault_ends_all_and_what_was_not_over_is_left(concurrency):
    asking = Asking()

    async def fails(one: Line) -> Said:
        if one.number == 3:
            raise OSError("away")
        return await asking(one)

    made = Warming(fails, Budget(), asking.now)
    with pytest.raises(OSError, match="away"):
        await made.run([line(at) for at in range(1, 10)], concurrency)
    assert made.result.stored + made.result.left == 9
    assert made.result.left >= 7 - concurrency


async def test_one_that_is_ended_counts_what_was_being_asked_as_left():
    begun = asyncio.Event()

    async def hangs(_one: Line) -> Said:
        begun.set()
        return await asyncio.Event().wait()

    made = Warming(hangs, Budget(), lambda: 0.0)
    task = asyncio.create_task(made.run([line(at) for at in range(9)], 2))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert made.result.left == 9


async def test_a_path_whose_answers_are_not_kept_is_not_asked():
    asking = Asking()
    made = Warming(asking, Budget(requests=0), asking.now)
    told = list(lines([b'{"path": "/v1/files", "body": {}}']))
    await made.run(told, 1)
    assert (asking.asked, made.result.left) == ([], 1)
    made = Warming(asking, Budget(), asking.now)
    await made.run(told, 1)
    assert (asking.asked, made.result.not_kept, made.result.asked) == ([], {"uncacheable_path": 1}, 0)


def test_what_came_of_it_is_cut_where_it_is_long():
    result = warming.Result(failed=[(number, 500) for number in range(9, 0, -1)])
    told = result.plain([warming.BadLine(number, "x") for number in range(9)], 2)
    assert told["failed"] == [{"line": 1, "status": 500}, {"line": 2, "status": 500}]
    assert [one["line"] for one in told["bad"]] == [0, 1]


# --- header lines ----------------------------------------------------------------------------------------------------


def named(one: Line, *usual: tuple[bytes, bytes]) -> dict[bytes, bytes]:
    found = fields_of(one, usual)
    assert len({name.lower() for name, _ in found}) == len(found)
    return {name.lower(): value for name, value in found}


def test_a_request_is_the_least_urgent_whatever_its_line_says():
    told = named(line(X_Priority="P0", Priority="u=0", X_Cache_KB="faq"), (b"x-priority", b"P0"))
    assert told == {b"x-cache-kb": b"faq", b"content-type": b"application/json", b"x-priority": b"P2"}


@pytest.mark.parametrize(
    "name",
    ["Host", "Content-Length", "Transfer-Encoding", "Connection", "Accept-Encoding", "Expect", "Content-Encoding",
     "content_length", "Transfer_Encoding"],
)  # fmt: skip
def test_how_a_message_is_framed_is_no_business_of_a_line(name):
    told = named(Line(1, CHAT, ((name, "5"),), b"{}"), (name.encode(), b"6"))
    assert set(told) == {b"content-type", b"x-priority"}


def test_the_call_says_what_a_line_does_not():
    usual = ((b"Authorization", b"Bearer A"), (b"OpenAI-Organization", b"o"), (b"X-Cache-KB", b"faq"))
    assert named(line(), *usual)[b"authorization"] == b"Bearer A"
    assert named(line(X_Cache_KB="own"), *usual)[b"x-cache-kb"] == b"own"
    mine = named(line(x_api_key=" K "), *usual)
    assert (mine[b"x-api-key"], mine[b"x-cache-kb"]) == (b"K", b"faq")
    assert mine.keys().isdisjoint({b"authorization", b"openai-organization"})
    assert named(line(OpenAI_Project="p"), *usual)[b"authorization"] == b"Bearer A"


@pytest.mark.parametrize("path", ["/v1/x y", "/v1/x#y", "/é", "v1", "//\r\n", 5, "/v1/x\x7f"])
def test_a_path_is_one_that_can_be_sent(path):
    assert "`path`" in read(1, json.dumps({"path": path, "body": {}}).encode()).why


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("3", 3.0), ("0", 0.0), ("", None), ("-1", None), ("1.5", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None),
     ("9" * 400, None), ("٣", None)],
)  # fmt: skip
def test_a_pause_is_a_number_of_seconds(told, seconds):
    assert pause_of(told) == seconds


@pytest.mark.parametrize(
    ("body", "tokens"),
    [(b'{"usage":{"total_tokens":7}}', 7), (b"", 0), (b"\xff", 0), (b'{"usage":null}', 0), (b"[1]", 0),
     (b'{"usage":{"total_tokens":"7"}}', 0), (b'{"usage":{"total_tokens":true}}', 0),
     (b'data: {"usage":{"total_tokens":3}}\n\ndata: {"usage":{"total_tokens":7}}\r\n\r\ndata: [DONE]\n\n', 7)],
)  # fmt: skip
def test_an_answer_says_what_it_cost(body, tokens):
    assert tokens_of(body) == tokens
