"""A new version that says which documents changed fells what read one of them, or does not say what it read."""

import pytest

from tests.proxy.test_knowledge import KB, says

READ = {
    1: "doc:faq-7", 2: "doc:faq-7, doc:faq-8", 3: "doc:faq-8", 4: "red", 5: None, 6: "doc:faq-77", 7: "faq-7, doc:faq-8",
    8: "doc:%66aq-7", 9: "DOC:faq-7",
}  # fmt: skip
"""Seed -> what the backend says that the answer read."""
FALL = {1, 2, 4, 5, 8, 9}
ELSEWHERE = {20: {"X_Cache_KB": "other"}, 21: {}}
"""Of these the one rests on another knowledge base, the other on none; both read the document."""


@pytest.mark.parametrize("who", ["backend", "request"])
async def test_what_read_another_document_is_still_served(place, backend, who):
    rests = dict.fromkeys(READ, KB) | ELSEWHERE

    async def ask(seed: int, client) -> str:
        tag = READ.get(seed, "doc:faq-7")
        told = {"X_Cache_Tags": tag} if who == "request" and tag else {}
        backend.script = says("x", **({"Cache_Tag": tag} if who == "backend" and tag else {}))
        return (await client.chat(seed=seed, **rests[seed], **told)).cache

    for seed in rests:
        assert [await ask(seed, client) for client in place.clients][1:] == ["HIT"] * (len(place.clients) - 1)
    told = await place.desks[0].put("handbook", "v2", changed_documents=["faq-7"])
    assert told["purged"] == len(FALL)
    found = {seed for seed in rests if await ask(seed, place.clients[-1]) == "MISS"}
    assert found == FALL
    assert {await ask(seed, client) for seed in rests for client in place.clients} == {"HIT"}


async def test_documents_of_each_version_fall_with_it(place, backend):
    """One version after the other: what the next one changes has no part in what the last one changed."""
    for seed in range(4):
        backend.script = says("x", Cache_Tag=f"doc:d{seed}")
        await place.clients[0].chat(seed=seed, **KB)
    for number in range(4):
        desk = place.desks[number % len(place.desks)]
        assert (await desk.put("handbook", f"v{number}", changed_documents=[f"d{number}"]))["purged"] == 1
        left = [
            (await place.clients[-1].chat(seed=seed, Cache_Control="only-if-cached", **KB)).status for seed in range(4)
        ]
        assert left == [504] * (number + 1) + [200] * (3 - number)
