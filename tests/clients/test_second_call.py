"""Real clients ask twice, plain and streamed: the second call is a hit, and the client sees no other difference."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.backend import Exchange, chunk, completion, usage_chunk
from tests.parts import engine as part

CLIENTS = [
    "openai_sync.py", "openai_async.py", "langchain.py", "litellm_sdk.py", "pydantic_ai_agent.py", "openai_node.mjs",
]  # fmt: skip
ID = "chatcmpl-abc123"


async def answering(exchange: Exchange) -> None:
    """A backend that repeats the question, with a request id of its own."""
    question = exchange.seen.json["messages"][-1]["content"]
    extra = b"x-request-id: request-of-the-first\r\nx-ratelimit-remaining-requests: 5\r\n"
    if exchange.seen.json.get("stream"):
        words = [chunk({"content": word}) for word in ("You ", "asked ", question, ".")]
        opening, end = chunk({"role": "assistant", "content": ""}), chunk(finish="stop")
        await exchange.events(opening, *words, end, usage_chunk(), extra=extra)
    else:
        await exchange.json(completion(f"You asked {question}."), extra=extra)


def calls(one: str, two: str) -> list[tuple[str, str]]:
    """Twice plain, twice streamed, then each the other way."""
    return [
        ("plain", one), ("plain", one), ("streamed", two), ("streamed", two), ("streamed", one), ("plain", two),
    ]  # fmt: skip


EXPECTED = ["MISS", "HIT", "MISS", "HIT", "HIT", "HIT"]


@pytest.mark.parametrize("script", CLIENTS)
async def test_the_second_call_is_a_hit(run, backend, proxy, script):
    """B18, B21, B43."""
    backend.script = answering
    seen = await run(script, proxy.base, calls("one", "two"))
    assert [s["cache"] for s in seen] == EXPECTED
    assert backend.calls == 2
    assert [s["text"] for s in seen] == [
        f"You asked {word}." for word in ("one", "one", "two", "two", "one", "two")
    ]  # fmt: skip
    assert {s["finish"] for s in seen} == {"stop"}
    assert {s["usage"] for s in seen} == {7}
    requests = [s["request"] for s in seen]
    assert requests[0] == requests[2] == "request-of-the-first", "a miss has the backend's request id"
    hits = [r for r, s in zip(requests, seen, strict=True) if s["cache"] == "HIT"]
    assert all(hits)
    assert len({*hits, "request-of-the-first"}) == 5, "each hit has a request id of its own"
    if script != "langchain.py":  # gives ids of its own
        assert {seen[0]["id"], seen[2]["id"]} == {ID}
        assert len({s["id"] for s in seen}) == 5, "each hit has an id of its own"


@pytest.mark.parametrize("script", ["openai_sync.py", "openai_node.mjs"])
async def test_another_credential_is_a_miss(run, backend, proxy, script):
    """B30: and the backend sees that credential as the client sent it."""
    backend.script = answering
    for key in ("sk-a", "sk-b"):
        seen = await run(script, proxy.base, [("plain", "one")], key=key)
        assert [s["cache"] for s in seen] == ["MISS"]
    assert [s.get(b"authorization") for s in backend.seen] == [b"Bearer sk-a", b"Bearer sk-b"]


async def test_a_balancers_cookie_does_not_make_another_question(run, backend, proxy):
    """The SDK for Python sends back the cookies it was given, and balancers give everyone a new one every few minutes."""

    async def balanced(exchange: Exchange) -> None:
        cookie = b"Set-Cookie: __cf_bm=%d; path=/\r\nSet-Cookie: AWSALB=%d; path=/\r\n" % (backend.calls, backend.calls)
        await exchange.json(completion(), extra=cookie)

    backend.script = balanced
    seen = await run(
        "openai_sync.py", proxy.base, [("plain", "one"), ("plain", "two"), ("plain", "one"), ("plain", "two")]
    )
    assert [s["cache"] for s in seen] == ["MISS", "MISS", "HIT", "HIT"]


async def test_clients_share_answers_where_they_ask_the_same(run, backend, proxy):
    """The synchronous and the asynchronous SDK and the SDK for Node send other headers, and one question."""
    backend.script = answering
    scripts = ["openai_sync.py", "openai_async.py", "openai_node.mjs"]
    seen = [(await run(script, proxy.base, [("plain", "one")]))[0]["cache"] for script in scripts]
    assert (seen, backend.calls) == (["MISS", "HIT", "HIT"], 1)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[part.Engine]:
    running = part.start(Path(tmp_path_factory.mktemp("engine")) / "log")
    yield running
    running.stop()


@pytest.mark.engine
@pytest.mark.parametrize("script", CLIENTS)
async def test_with_the_real_engine(run, start, engine, script):
    proxy = await start(upstream=engine.url)
    questions = "Good morning!", "What is the capital of France? Answer in one word."
    seen = await run(script, proxy.base, calls(*questions), model=part.MODEL)
    assert [s["cache"] for s in seen] == EXPECTED
    one, _, two, _, one_again, two_again = seen
    assert seen[1]["text"] == one["text"] == one_again["text"]
    assert seen[3]["text"] == two["text"] == two_again["text"]
    assert one["text"]
    assert "Paris" in two["text"]
    assert {s["finish"] for s in seen} == {"stop"}
    assert seen[1]["usage"] == one["usage"] == one_again["usage"] > 0
    assert seen[3]["usage"] == two["usage"] == two_again["usage"] > 0
