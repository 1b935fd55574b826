"""The main job: the first answer from the backend, the second from the cache, in every pair of forms."""

import pytest

from tests.rig import BODY


@pytest.mark.parametrize("first", [{}, {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}])
@pytest.mark.parametrize("second", [{}, {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}])
async def test_second_is_a_hit_with_the_same_content(client, backend, first, second):
    one = await client.chat(**first)
    two = await client.chat(**second)
    assert (one.cache, two.cache, backend.calls) == ("MISS", "HIT", 1)
    assert one.text == two.text == "Hello."
    assert two.get("x-cache-tier") == "exact"
    wants_usage = second.get("stream_options") is not None
    if second.get("stream"):
        assert two.events[-1] == b"[DONE]"
        assert [d["usage"] for d in two.documents if d.get("usage")] == (
            [{"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}] if wants_usage else []
        )
        assert len(two.events) > 2
    else:
        assert two.json["usage"] == {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


async def test_other_credential_is_a_miss(client, backend):
    await client.chat(key="A")
    other = await client.chat(key="B")
    assert (other.cache, backend.calls) == ("MISS", 2)
    assert backend.seen[1].get(b"authorization") == b"Bearer B"


async def test_usage_is_asked_of_the_backend_and_kept_from_who_did_not_ask(client, backend):
    answer = await client.chat(stream=True)
    assert backend.seen[0].json["stream_options"] == {"include_usage": True}
    assert all("usage" not in d for d in answer.documents)
    assert backend.seen[0].json == {**BODY, "stream": True, "stream_options": {"include_usage": True}}
