"""Answers rendered in another form: once, bounded, and never those of another entry."""

import dataclasses
import json

import pytest

from cacheproxy.core import replay
from cacheproxy.core.model import Answer, Endpoint, Entry, Form
from cacheproxy.engine import replays
from cacheproxy.engine.replays import Replays
from tests.fakes.backend import chunk, completion, usage_chunk


def kept(key: int, text: str = "Hello.", stored_at: float = 1000.0) -> Entry:
    """A JSON answer of `text`, as stored."""
    body = json.dumps(completion(text)).encode()
    answer = Answer(Form.JSON, "application/json", body, has_usage=True)
    return Entry(b"%032d" % key, b"c" * 16, b"c" * 16, "", Endpoint.CHAT, "m", answer, stored_at, 2e9, 2e9, 0.1)


def streamed(key: int) -> Entry:
    body = (
        chunk({"role": "assistant", "content": "Hello."}) + chunk(finish="stop") + usage_chunk() + b"data: [DONE]\n\n"
    )
    answer = Answer(Form.EVENTS, "text/event-stream", body, has_usage=True)
    return dataclasses.replace(kept(key), answer=answer)


@pytest.fixture
def rendered(monkeypatch) -> list[bytes]:
    """The body of each answer that was really rendered."""
    done: list[bytes] = []

    def render(answer: Answer, endpoint: Endpoint, **wants: bool) -> Answer:
        done.append(answer.body)
        return replay.render(answer, endpoint, **wants)

    class Counted:
        is_ready = staticmethod(replay.is_ready)

    Counted.render = staticmethod(render)
    monkeypatch.setattr(replays, "replay", Counted)
    return done


def test_the_recorded_form_is_given_as_it_is(rendered):
    entry = kept(1)
    assert Replays().render(entry, stream=False, wants_usage=False) is entry.answer
    assert rendered == []


def test_another_form_is_rendered_once(rendered):
    memory, entry = Replays(), kept(1)
    first = memory.render(entry, stream=True, wants_usage=False)
    assert first.form is Form.EVENTS
    assert b"Hello." in first.body
    assert memory.render(entry, stream=True, wants_usage=False) is first
    assert len(rendered) == 1


def test_each_form_is_its_own(rendered):
    """B21: JSON, a stream and a stream with usage are three answers, whichever was asked first."""
    memory, entry = Replays(), streamed(1)
    for _ in range(2):
        as_json = memory.render(entry, stream=False, wants_usage=False)
        plain = memory.render(entry, stream=True, wants_usage=False)
        full = memory.render(entry, stream=True, wants_usage=True)
        assert json.loads(as_json.body)["choices"][0]["message"]["content"] == "Hello."
        assert b'"usage"' not in plain.body
        assert full.body == entry.answer.body
    assert len(rendered) == 2


def test_a_stream_made_of_json_has_its_usage_only_where_it_is_asked_for(rendered):
    memory, entry = Replays(), kept(1)
    for _ in range(2):
        assert b'"usage"' not in memory.render(entry, stream=True, wants_usage=False).body
        assert b'"usage"' in memory.render(entry, stream=True, wants_usage=True).body
    assert len(rendered) == 2


@pytest.mark.parametrize("stored_at", [1000.0, 1001.0])
def test_an_entry_made_anew_is_rendered_anew(stored_at):
    """A refreshed answer is never given in the words of the old one, also if both were stored at one moment."""
    memory = Replays()
    memory.render(kept(1, "Old."), stream=True, wants_usage=False)
    newer = memory.render(kept(1, "New.", stored_at=stored_at), stream=True, wants_usage=False)
    assert b"New." in newer.body
    assert b"Old." not in newer.body


def test_entries_are_kept_apart():
    """B30: the rendering of one key is never given for another."""
    memory = Replays()
    for number in range(20):
        memory.render(kept(number, f"N{number}."), stream=True, wants_usage=True)
    for number in range(20):
        assert f"N{number}.".encode() in memory.render(kept(number, f"N{number}."), stream=True, wants_usage=True).body


def test_what_is_remembered_is_bounded(rendered):
    """B78: in bytes; least recently asked out first, and one that would take it all is rendered but not remembered."""
    memory = Replays(capacity=40_000)
    for number in range(100):
        memory.render(kept(number, "x" * 200), stream=True, wants_usage=False)
    assert 0 < memory._known.currsize <= 40_000
    assert len(rendered) == 100
    memory.render(kept(99, "x" * 200), stream=True, wants_usage=False)
    assert len(rendered) == 100
    memory.render(kept(0, "x" * 200), stream=True, wants_usage=False)
    assert len(rendered) == 101
    before = memory._known.currsize
    large = kept(500, "y" * 20_000)
    for _ in range(2):
        assert b"yyy" in memory.render(large, stream=True, wants_usage=False).body
    assert len(rendered) == 103
    assert memory._known.currsize == before
