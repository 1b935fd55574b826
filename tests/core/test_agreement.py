"""Whether two answers say the same: what is sure either way, and what counts for nothing."""

import json

import pytest

from cacheproxy.core import agreement
from cacheproxy.core.agreement import DOUBT, LEAST, Agreement, beginning, equal, judge, said
from cacheproxy.core.model import Answer, Endpoint, Form
from tests.fakes.backend import completion

AGREE, DIFFER, UNKNOWN = Agreement.AGREE, Agreement.DIFFER, Agreement.UNKNOWN


def answer(document) -> Answer:
    return Answer(Form.JSON, "application/json", json.dumps(document).encode(), has_usage=True)


@pytest.mark.parametrize(("one", "other"), [("Yes.", "yes."), ("A  b\n c", " a b C "), ("Straße", "STRASSE")])
def test_case_and_spaces_do_not_count(one, other):
    assert equal(one, other)
    assert judge(one, other, None) is AGREE
    assert judge(one, other, -1.0) is AGREE


def test_nothing_said_tells_nothing():
    assert judge("", " ", 1.0) is UNKNOWN


@pytest.mark.parametrize(
    ("cosine", "verdict"),
    [
        (1.0, AGREE), (LEAST, AGREE), (LEAST - 0.001, UNKNOWN), (LEAST - DOUBT + 0.001, UNKNOWN),
        (LEAST - DOUBT - 0.001, DIFFER), (-1.0, DIFFER),
    ],
)  # fmt: skip
def test_between_the_same_and_another_lies_what_is_not_known(cosine, verdict):
    one, other = "You find it in the menu at the top.", "Look into the menu at the top."
    assert judge(one, other, cosine) is verdict
    assert judge(other, one, cosine) is verdict


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It costs 12 euros.", "It costs 15 euros."),
        ("You may smoke here.", "You may not smoke here."),
        ("Take 10 mg a day.", "Take 100 mg a day."),
        ("Switch the option on in the menu.", "Switch the option off in the menu."),
        ("Move the file from A to B.", "Move the file from B to A."),
        ("It opens on 3 May.", "It opens on 4 May."),
    ],
)
def test_a_short_answer_that_says_the_opposite_differs_however_like_it_is(one, other):
    assert judge(one, other, 0.99) is DIFFER
    assert judge(one, other, None) is not AGREE


def test_in_a_long_answer_a_number_more_is_no_other_answer():
    """Long answers of a model never have the same examples in them."""
    long = "You find it in the menu at the top, where the settings are. " * 8
    assert judge(long, long + "There are 7 of them.", 0.95) is AGREE
    assert judge("You find it in the menu.", "You find it in the menu. There are 7.", 0.95) is DIFFER


def test_without_a_vector_only_the_same_words_agree():
    assert judge("the menu at the top right", "At the top right: the menu", None) is AGREE
    assert judge("the menu at the top right", "Somewhere else entirely", None) is UNKNOWN


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("One. Two.", 100, "One. Two."),
        ("One. Two three.", 8, "One."),
        ("One two three", 8, "One two"),
        ("Onetwothree", 4, "Onet"),
        ("\u4e00\u3002\u4e8c\u4e09", 3, "\u4e00\u3002"),
    ],
)
def test_a_beginning_is_whole_sentences(text, most, expected):
    assert beginning(text, most) == expected


def test_what_is_said_is_the_words_of_the_answer_alone():
    document = completion("Hello.")
    document["choices"][0]["message"]["reasoning_content"] = "Hm."
    assert said(answer(document), Endpoint.CHAT) == "Hello."
    turns = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {
            "type": "message",
            "content": [{"type": "output_text", "text": "Hel"}, {"type": "output_text", "text": "lo."}],
        },
    ]
    assert said(answer({"output": turns}), Endpoint.RESPONSES) == "Hello."
    assert said(answer({"choices": []}), Endpoint.CHAT) == ""
    assert agreement.said(answer(completion("")), Endpoint.CHAT) == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Press the red button, then 12 times the blue one.", set()),
        ("Write to Help@Example.com.", {"help@example.com"}),
        ("See https://a.example/x?y=1, or evil.example/login!", {"https://a.example/x?y=1", "evil.example/login"}),
        ("[here](http://evil.example)", {"http://evil.example"}),
        ("Call +49 (30) 123-45 67 now.", {"49301234567"}),
        ("Pay to 1234 5678 9012.", {"123456789012"}),
        ("It is 3.14, i.e. v1.2, e.g. in 2026.", set()),
        ("www\uff0eevil\uff0eexample", {"www.evil.example"}),
    ],
)
def test_where_a_text_sends_its_reader(text, found):
    assert agreement.lures(text) == found
