"""One closed list of words, and the Cache-Status text that is made of it."""

import re

import pytest

from cacheproxy.core.outcome import Forward, Outcome, Reason, Source, cache_status


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Outcome(Source.HIT, ttl=60, age=5, entry_id="e"), "cacheproxy; hit; ttl=60; detail=exact"),
        (Outcome(Source.HIT), "cacheproxy; hit; ttl=0; detail=exact"),
        (Outcome(Source.STALE, ttl=-7), "cacheproxy; hit; ttl=-7; detail=exact"),
        (Outcome(Source.MISS, Reason.ABSENT, Forward.MISS, stored=True), "cacheproxy; fwd=miss; stored"),
        (Outcome(Source.MISS, Reason.ABSENT, Forward.MISS), "cacheproxy; fwd=miss"),
        (Outcome(Source.MISS, Reason.FINISH_REASON, Forward.MISS), "cacheproxy; fwd=miss; detail=finish_reason"),
        (Outcome(Source.MISS, Reason.EXPIRED, Forward.STALE, stored=True),
        "cacheproxy; fwd=stale; stored; detail=expired"),
        (Outcome(Source.MISS, Reason.NO_CACHE, Forward.REQUEST, stored=True),
        "cacheproxy; fwd=request; stored; detail=no_cache"),
        (Outcome(Source.BYPASS, Reason.NO_STORE, Forward.BYPASS), "cacheproxy; fwd=bypass; detail=no_store"),
        (Outcome(Source.BYPASS), "cacheproxy; fwd=bypass"),
    ],
)  # fmt: skip
def test_cache_status(outcome, text):
    """RFC 9211 section 2."""
    assert cache_status(outcome) == text


def test_every_reason_is_a_word_of_its_own_with_an_explanation():
    """A word is a header value, a metric label and a row of the docs."""
    words = [reason.word for reason in Reason]
    assert len(set(words)) == len(words) == len(Reason.__members__)
    for name, reason in Reason.__members__.items():
        assert reason.word == name.lower()
        assert re.fullmatch(r"[a-z][a-z_]+", reason.word)
        assert reason.explanation.endswith(".")


@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("forward", Forward)
def test_a_status_is_one_member_of_a_structured_list(reason, forward):
    """RFC 9211, RFC 8941: tokens and integers only, so that any parser reads it."""
    text = cache_status(Outcome(Source.MISS, reason, forward))
    assert re.fullmatch(r"cacheproxy(; [a-z]+(=(-?[0-9]+|[a-z][a-z_]*))?)+", text)


def test_the_sources_are_the_words_of_the_contract():
    assert [s.value for s in Source] == ["HIT", "STALE", "MISS", "BYPASS", "SHADOW"]
