"""Layer 2 with the embedding model that users have: what it cannot tell apart is told apart, what it cannot read is not
answered by meaning."""

import asyncio

import pytest

from cacheproxy.core import key
from tests.fakes.backend import completion, gives
from tests.parts import embedder as part
from tests.rig import Client, start, until

PLACES = "Paris Lyon Nice Lille Metz Brest Tours Dijon Nancy Reims Rouen Caen Nimes Arles Cannes Calais"


@pytest.fixture(scope="module")
def model() -> str:
    return str(part.install())


@pytest.fixture
async def proxy(backend, model):
    proxy = await start(backend.url, semantic__mode="on", semantic__model_path=model, semantic__embed_timeout="20s")
    yield proxy
    await proxy.running.stop()


@pytest.fixture
def client(proxy, session) -> Client:
    return Client(proxy.base, session)


async def learnt(proxy, count: int = 1) -> None:
    await until(lambda: len(proxy.house.meaning.index._index) == count, what=f"{count} rows")


def ask(client, *texts, **more):
    """The last text is the question; before it the user and the assistant spoke in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]
    return client.chat(messages=messages, **more)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How do I reset my password?", "How can I reset my password?"),
        ("How do I reset my password?", "What is the way to reset my password?"),
        ("How can I cancel my subscription?", "What should I do to cancel my subscription?"),
        ("What is the capital of France? Answer in one word.", "What is France's capital? Answer in one word."),
    ],
)
async def test_other_words_for_one_question(proxy, client, backend, one, other):
    first = await ask(client, one)
    await learnt(proxy)
    answer = await ask(client, other)
    assert (answer.cache, answer.get("x-cache-tier"), answer.text) == ("HIT", "semantic", first.text)
    assert 0.92 <= float(answer.get("x-cache-similarity")) < 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How do I convert a PDF to a Word file?", "How do I convert a Word file to a PDF?"),
        ("Is it safe to turn off the firewall?", "Is it unsafe to turn off the firewall?"),
        ("Is smoking allowed here?", "Is smoking not allowed here?"),
        ("Where is order 1042?", "Where is order 1043?"),
        ("What is new in v3.1?", "What is new in v3.2?"),
        ("May I take 10 mg of ibuprofen?", "May I take 100 mg of ibuprofen?"),
        ("What were the sales in 2025?", "What were the sales in 2026?"),
        ("What did Bob tell Alice?", "What did Alice tell Bob?"),
        ("How do I switch on the alarm?", "How do I switch off the alarm?"),
    ],
)
async def test_what_it_cannot_tell_apart(proxy, client, backend, one, other):
    """B68."""
    await ask(client, one)
    await learnt(proxy)
    answer = await ask(client, other, X_Cache_Semantic="0.5")
    assert (answer.cache, answer.get("x-cache-reason") in ("unlike", "nothing_near")) == ("MISS", True)
    assert len(backend.seen) == 2


async def test_a_turn_before_that_differs(proxy, client, backend):
    await ask(client, "My plan is Basic.", "Noted.", "What does it cost a month?")
    await learnt(proxy)
    other = await ask(client, "My plan is Premium.", "Noted.", "How much does it cost a month?")
    assert (other.cache, other.get("x-cache-reason")) == ("MISS", "nothing_near")
    same = await ask(client, "My plan is Basic.", "Noted.", "What does it cost each month?")
    assert (same.cache, same.get("x-cache-tier")) == ("HIT", "semantic")


async def test_a_question_beyond_the_window_is_never_cut(proxy, client, backend):
    """The same long context with another question after it: to a model that cuts, they are one."""
    context = "The report says that the plant in Leipzig made 400 units a day and that costs fell. " * 20
    await ask(client, context + "How many units did it make?")
    answer = await ask(client, context + "Who wrote the report?")
    assert (answer.cache, answer.get("x-cache-reason")) == ("MISS", "too_long_question")
    assert len(backend.seen) == 2


@pytest.mark.parametrize(
    "text", ["我怎么重置密码？", "パスワードを再設定するにはどうすればいいですか？", "비밀번호를 어떻게 재설정합니까?"]
)
async def test_a_language_that_it_does_not_know(proxy, client, backend, text):
    answer = await ask(client, text)
    assert (answer.cache, answer.get("x-cache-reason")) == ("MISS", "unknown_words")


async def test_many_at_once_are_embedded_together_and_each_gets_its_own(proxy, client, backend):
    places = PLACES.split()
    backend.script = gives(completion("yes"))
    await asyncio.gather(*(ask(client, f"Is there a big station in {place}?") for place in places))
    await learnt(proxy, len(places))
    answers = await asyncio.gather(*(ask(client, f"Does {place} have a big station?") for place in places))
    assert {answer.status for answer in answers} == {200}
    stored = {key.entry_id(row.key): row.text for row in proxy.house.meaning.index._index.rows()}
    hits = [(place, answer) for place, answer in zip(places, answers, strict=True) if answer.cache == "HIT"]
    assert len(hits) > len(places) / 2
    assert all(place in stored[answer.get("x-cache-entry-id")] for place, answer in hits)
