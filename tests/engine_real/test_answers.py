"""First and second answer of a real engine: in every pair of forms the second comes from the cache and says the same."""

import pytest

from tests import rig
from tests.engine_real.asking import (
    BODIES,
    COMPLETIONS,
    FORMS,
    STREAM_WITH_USAGE,
    finishes,
    is_stream,
    name_of,
    same_but_for_identity,
    timings,
    usages,
    work_done,
)

_told: dict = {}


async def _told_directly(direct, path: str, form: dict):
    """What the engine says without a proxy; asked once."""
    key = (path, name_of(form))
    if key not in _told:
        _told[key] = await direct.send({**BODIES[path], **form}, path=path, key=None)
    return _told[key]


@pytest.mark.parametrize("second", FORMS, ids=name_of)
@pytest.mark.parametrize("first", FORMS, ids=name_of)
@pytest.mark.parametrize("path", BODIES, ids=name_of)
async def test_a_miss_and_a_hit_say_what_the_engine_says(client, direct, path, first, second):
    """B18, B21: whichever way it was recorded, the answer follows the request and equals the engine's own."""
    plain = await _told_directly(direct, path, {})
    truth = await _told_directly(direct, path, first)
    one = await client.send({**BODIES[path], **first}, path=path, key=None)
    before = await work_done(direct)
    two = await client.send({**BODIES[path], **second}, path=path, key=None)
    assert await work_done(direct) == before, "the engine was asked again"

    assert (truth.status, one.status, two.status) == (200, 200, 200)
    assert (one.cache, two.cache, two.get("x-cache-tier")) == ("MISS", "HIT", "exact")
    assert one.text == two.text == truth.text == plain.text
    assert "Paris" in one.text
    assert finishes(truth) == finishes(one) == finishes(two) == ["stop"]
    assert (is_stream(one), is_stream(two)) == ("stream" in first, "stream" in second)
    assert usages(one) == usages(truth)
    usage = usages(plain)
    assert usage, "the engine tells its usage in JSON"
    if second == {"stream": True}:
        assert usages(two) in ([], usage), (
            "who did not ask for the usage gets it only where the engine sends it unasked"
        )
    else:
        assert usages(two) == usage
    if "stream" in second:
        assert two.events.count(b"[DONE]") == 1
        assert two.events[-1] == b"[DONE]"
        assert len(two.documents) > 3


@pytest.mark.parametrize("form", FORMS, ids=name_of)
@pytest.mark.parametrize("path", BODIES, ids=name_of)
async def test_a_hit_equals_its_miss_in_every_field(client, direct, path, form):
    """All but id and creation time, the engine's own field `timings` included; it stands where the engine puts it."""
    truth = await _told_directly(direct, path, form)
    one = await client.send({**BODIES[path], **form}, path=path, key=None)
    two = await client.send({**BODIES[path], **form}, path=path, key=None)
    assert (one.cache, two.cache) == ("MISS", "HIT")
    documents = [a.documents if is_stream(a) else [a.json] for a in (one, two)]
    assert [same_but_for_identity(d) for d in documents[0]] == [same_but_for_identity(d) for d in documents[1]]
    assert {d["id"] for d in documents[0]}.isdisjoint({d["id"] for d in documents[1]})
    assert len({d["id"] for d in documents[1]}) == 1
    assert len(timings(truth)) == len(timings(one)) == 1
    assert timings(truth)[0].keys() == timings(one)[0].keys()
    assert timings(two) == timings(one)


@pytest.mark.parametrize("path", BODIES, ids=name_of)
async def test_who_did_not_ask_for_usage_sees_the_stream_as_the_engine_sends_it_unasked(client, direct, path):
    """Ours is the question for usage, so its answer is taken out again: choices and usage as without a proxy."""
    truth = await _told_directly(direct, path, {"stream": True})
    one = await client.send({**BODIES[path], "stream": True}, path=path, key=None)
    assert one.cache == "MISS"
    assert usages(one) == usages(truth)
    assert all(d["choices"] for d in one.documents), "clients index choices[0]"
    said = [[c for d in a.documents for c in d["choices"] if c.get("finish_reason") or _says(c)] for a in (truth, one)]
    assert said[0] == said[1]


WEIGHED = {rig.CHAT: ({"logprobs": True, "top_logprobs": 2}, "MISS"), COMPLETIONS: ({"logprobs": 2}, "HIT")}


@pytest.mark.parametrize("path", WEIGHED, ids=name_of)
async def test_probabilities_recorded_in_a_stream_are_those_of_the_document(client, direct, path):
    """B21: the engine's chat stream does not weigh the token that ends it, its document does; so it is asked again."""
    weighed, expected = WEIGHED[path]
    body = {**BODIES[path], **weighed}
    truth = await direct.send(body, path=path, key=None)
    assert (await client.send({**body, **STREAM_WITH_USAGE}, path=path, key=None)).cache == "MISS"
    answer = await client.send(body, path=path, key=None, Accept_Encoding="identity")
    assert answer.json["choices"] == truth.json["choices"]
    assert (answer.cache, usages(answer)) == (expected, usages(truth))


def _says(choice: dict) -> str | None:
    return choice["delta"].get("content") if "delta" in choice else choice["text"]
