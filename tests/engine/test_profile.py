"""The stopwatch of one request."""

import re

from cacheproxy.engine.profile import Stages


def test_laps_follow_one_another_and_leave_nothing_out():
    """The laps are the time since the one before; their sum is the total up to the last."""
    stages = Stages()
    for name in ("parse", "exact", "upstream"):
        sum(range(20_000))
        stages.lap(name)
    assert [name for name, _ in stages.laps] == ["parse", "exact", "upstream"]
    assert all(seconds > 0 for _, seconds in stages.laps)
    assert 0 < sum(seconds for _, seconds in stages.laps) <= stages.total


def test_the_header_is_that_of_the_standard_in_milliseconds():
    """``Server-Timing``: one entry a stage with its `dur`, then the total."""
    stages = Stages()
    stages.laps = [("parse", 0.0015), ("exact", 2.0)]
    text = stages.server_timing()
    assert text.startswith("parse;dur=1.500, exact;dur=2000.000, total;dur=")
    assert re.fullmatch(r"[a-z]+;dur=[0-9]+\.[0-9]{3}(, [a-z]+;dur=[0-9]+\.[0-9]{3})*", text)


def test_a_request_without_stages_has_its_total():
    assert re.fullmatch(r"total;dur=[0-9]+\.[0-9]{3}", Stages().server_timing())


async def test_the_stages_of_a_request_are_told(client):
    """The stages that the contract names, in the order of a request's way."""
    miss, hit = await client.chat(), await client.chat()
    for answer, stages in (
        (miss, ["parse", "normalise", "exact", "upstream", "total"]),
        (hit, ["parse", "normalise", "exact", "auth", "total"]),
    ):
        told = [part.partition(";")[0] for part in answer.get("server-timing").split(", ")]
        assert [name for name in told if name in stages] == stages
        assert len(set(told)) == len(told)
