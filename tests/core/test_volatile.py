"""What of a text is likely to be another from call to call, and the same looked for around one place only."""

import random

import pytest

from cacheproxy.core.volatile import AROUND, MOST_FENCES, Kind, Volatile, is_said, volatile, volatile_at
from tests.core.heads import ODD, UUIDS, prose

TIME = "2026-03-01 10:00:01 UTC"
SAID = [
    ("The current time is {}.", TIME, "clock"),
    ("It is {} now.", "10:00:01", "clock"),
    ("Session id: {}", UUIDS[0], "ids"),
]


def test_everything_is_found_in_order():
    text = f"x-request-id: 4\nIt is {TIME}.\nSession id: {UUIDS[0]}\nToday is 2026-03-01.\nBye."
    found = [(text[one.start : one.end], one.kind.value, one.is_date) for one in volatile(text)]
    assert found == [
        ("x-request-id: 4\n", "nonces", False), (TIME, "clock", False), (UUIDS[0], "ids", False),
        ("2026-03-01", "clock", True),
    ]  # fmt: skip
    assert [one.kind.value for one in volatile(text, ())] == ["ids", "clock", "ids", "clock"]


def test_an_id_in_a_nonce_line_is_found_once():
    text = f"x-request-id: {UUIDS[0]}\nHello"
    assert volatile(text) == [Volatile(0, len(text) - len("Hello"), Kind.NONCES)]


def test_what_was_moved_to_the_end_is_done_with():
    text = f"It is [time 1].\n\n[moved here from above]\n[time 1]: {TIME}"
    assert volatile(text) == []


@pytest.mark.parametrize(("frame", "value", "kind"), SAID)
@pytest.mark.parametrize("joint", ["\n", " "])
def test_around_any_place_the_same_is_found_as_in_the_whole(frame, value, kind, joint):
    """In lines, and in a text of one line."""
    dice = random.Random(1)
    for number in range(40):
        lines = prose(number, 30).split("\n")
        lines.insert(dice.randint(0, 30), frame.format(value))
        text = joint.join(lines)
        (one,) = volatile(text)
        assert (text[one.start : one.end], one.kind) == (value, kind)
        for at in (one.start, (one.start + one.end) // 2, one.end):
            assert volatile_at(text, at) == one
        assert volatile_at(text, one.start - 1) is None
        assert one.end == len(text) or volatile_at(text, one.end + 1) is None


def test_what_is_only_shown_is_told_apart():
    text = f"{prose(1)}\n```\n{prose(2)}\nIt is {TIME}.\n```\nIt is {TIME}."
    places = text.index(TIME), text.rindex(TIME)
    assert [is_said(text, at, at + len(TIME)) for at in places] == [False, True]
    assert [volatile_at(text, at).kind for at in places] == ["clock", "clock"]
    assert len(volatile(text)) == 1


def test_what_closes_not_far_behind_counts():
    text = f"Hi.\n<log>\nIt is {TIME}.\n{prose(1, 20)}\n</log>\nBye."
    at = text.index(TIME)
    assert not is_said(text, at, at + len(TIME))
    assert is_said(text.replace("</log>", ""), at, at + len(TIME))


def test_how_much_code_is_looked_at_is_bounded():
    texts = ["```\ncode\n```\n" * count + f"It is {TIME}." for count in (MOST_FENCES, MOST_FENCES + 1)]
    places = [text.index(TIME) for text in texts]
    assert [is_said(text, at, at + len(TIME)) for text, at in zip(texts, places, strict=True)] == [True, False]


@pytest.mark.parametrize("text", ODD)
def test_odd_texts(text):
    volatile(text)
    for at in (0, len(text) // 2, len(text), AROUND, 2 * AROUND + 1):
        found = volatile_at(text, min(at, len(text)))
        assert found is None or found.start <= min(at, len(text)) <= found.end
        is_said(text, 0, min(at, len(text)))
