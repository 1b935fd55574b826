"""Who waits for another caller's answer: the table, row by row, over everything it can be asked."""

from itertools import product

import pytest

from cacheproxy.core.following import MOST_FAILURES, Step, at_end, at_head
from cacheproxy.core.outcome import Reason

FORMS = list(product((False, True), repeat=2))
WHOLE = [
    None, Reason.STORE_TROUBLE, Reason.TOO_LARGE, Reason.RECORDING_BUDGET, Reason.PURGED, Reason.SAME_ANSWER,
]  # fmt: skip
"""Why an answer that is whole and right may not have been kept."""


@pytest.mark.parametrize("unfit", WHOLE)
def test_a_stream_for_who_wants_one_is_given_as_it_comes(unfit):
    assert at_head(200, unfit, 0, streamed=True, wants_stream=True) is Step.READ


@pytest.mark.parametrize("unfit", WHOLE)
@pytest.mark.parametrize(("streamed", "wants_stream"), [form for form in FORMS if form != (True, True)])
def test_everything_else_is_waited_for(unfit, streamed, wants_stream):
    """B57, B59: a JSON answer is given when it is whole, one in the other form when it is stored."""
    assert at_head(200, unfit, 0, streamed=streamed, wants_stream=wants_stream) is Step.WAIT


@pytest.mark.parametrize(("streamed", "wants_stream"), FORMS)
@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_a_failure_is_tried_once_more_and_then_told(status, streamed, wants_stream):
    """B57: an error is not retried N times at once."""
    steps = [
        at_head(status, Reason.STATUS, failures, streamed=streamed, wants_stream=wants_stream) for failures in range(4)
    ]
    assert steps == [Step.AGAIN] * (MOST_FAILURES - 1) + [Step.READ] * (5 - MOST_FAILURES)
    assert MOST_FAILURES == 2


@pytest.mark.parametrize(("streamed", "wants_stream"), FORMS)
@pytest.mark.parametrize("status", [201, 204, 301, 304, 400, 401, 403, 404, 413, 422])
def test_other_statuses_are_for_who_asked_alone(status, streamed, wants_stream):
    """What the backend says to one caller's request it may not say to another's; another try would change nothing."""
    for failures in range(3):
        step = at_head(status, Reason.STATUS, failures, streamed=streamed, wants_stream=wants_stream)
        assert step is Step.ALONE


@pytest.mark.parametrize("unfit", [reason for reason in Reason if reason not in WHOLE])
@pytest.mark.parametrize(("streamed", "wants_stream"), FORMS)
def test_what_must_not_be_shared_is_not(unfit, streamed, wants_stream):
    assert at_head(200, unfit, 0, streamed=streamed, wants_stream=wants_stream) is Step.ALONE


def test_a_stream_without_its_usage_is_not_for_who_wants_it():
    """Who wants the answer as JSON finds it stored, or does not: that is seen at its end."""
    assert at_head(200, None, 0, streamed=True, wants_stream=True, lacking=True) is Step.ALONE
    assert at_head(200, None, 0, streamed=True, wants_stream=False, lacking=True) is Step.WAIT
    assert at_head(500, Reason.STATUS, 0, streamed=True, wants_stream=True, lacking=True) is Step.AGAIN


@pytest.mark.parametrize("reason", list(Reason))
@pytest.mark.parametrize("same_form", [False, True])
def test_what_broke_off_is_tried_once_more_and_then_told(reason, same_form):
    steps = [at_end(reason, failed=True, failures=failures, same_form=same_form) for failures in range(3)]
    assert steps == [Step.AGAIN, Step.READ, Step.READ]


@pytest.mark.parametrize("reason", WHOLE)
def test_at_its_end_a_whole_answer_is_read_in_its_own_form(reason):
    assert at_end(reason, failed=False, failures=0, same_form=True) is Step.READ


def test_at_its_end_a_stored_answer_is_looked_for_in_the_other_form():
    """B21: the form follows the request. One that was not stored is in one form only."""
    assert at_end(None, failed=False, failures=0, same_form=False) is Step.LOOK
    for reason in WHOLE[1:]:
        assert at_end(reason, failed=False, failures=0, same_form=False) is Step.ALONE


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason not in WHOLE])
@pytest.mark.parametrize("same_form", [False, True])
def test_at_its_end_an_answer_that_was_refused_is_for_nobody_else(reason, same_form):
    """B29: cut by its length, filtered, empty, with an error inside."""
    assert at_end(reason, failed=False, failures=1, same_form=same_form) is Step.ALONE
