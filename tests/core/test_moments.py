"""Moments that a text says: dates with a time of day, and times of day that it calls the present."""

from itertools import pairwise

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from cacheproxy.core import chunks, quoted
from cacheproxy.core.idents import idents
from cacheproxy.core.moments import Moment, moments

Z = "\u202f"  # what browsers write before AM and PM


def coarsened(text: str, found: list[Moment], unit: str) -> str:
    for moment in reversed(found):
        text = text[: moment.start] + getattr(moment, unit) + text[moment.end :]
    return text


def said(text: str, **options: bool) -> list[str]:
    return [text[moment.start : moment.end] for moment in moments(text, **options)]


DATED = [
    # the text, to the day, to the hour
    ("2026-03-01 10:00:01 UTC", "2026-03-01", "2026-03-01 10:00:00 UTC"),
    ("2026-03-01T10:00:01Z", "2026-03-01", "2026-03-01T10:00:00Z"),
    ("2026-03-01t10:00:01z", "2026-03-01", "2026-03-01t10:00:00z"),
    ("2026-03-01T10:59", "2026-03-01", "2026-03-01T10:00"),
    ("2026-03-01 9:59", "2026-03-01", "2026-03-01 9:00"),
    ("2026-03-01T10:00:01.123456+01:00", "2026-03-01", "2026-03-01T10:00:00+01:00"),
    ("2026-03-01T10:00:01,5-0530", "2026-03-01", "2026-03-01T10:00:00-0530"),
    ("2026-03-01T10:00:01+01:00[Europe/Berlin]", "2026-03-01", "2026-03-01T10:00:00+01:00[Europe/Berlin]"),
    ("2026-03-01 10:00:01 +0000 UTC m=+0.012", "2026-03-01", "2026-03-01 10:00:00 +0000 UTC m=+0"),
    ("2026-03-01 10:00:01 GMT+2", "2026-03-01", "2026-03-01 10:00:00 GMT+2"),
    ("2026-03-01 10:00 (Central European Time)", "2026-03-01", "2026-03-01 10:00 (Central European Time)"),
    ("2026-03-01 10:01 CET", "2026-03-01", "2026-03-01 10:00 CET"),
    ("2026-03-01 10:01 Eastern Standard Time", "2026-03-01", "2026-03-01 10:00 Eastern Standard Time"),
    ("2026-03-01 10:01 America/New_York", "2026-03-01", "2026-03-01 10:00 America/New_York"),
    ("2026-03-01 10:01 local time", "2026-03-01", "2026-03-01 10:00 local time"),
    ("2026-03-01 at 10:01", "2026-03-01", "2026-03-01 at 10:00"),
    ("2026-03-01 (10:01 UTC)", "2026-03-01", "2026-03-01 (10:00 UTC)"),
    ("2026/03/01 10:01", "2026/03/01", "2026/03/01 10:00"),
    ("2026-03-01 23:59:60", "2026-03-01", "2026-03-01 23:00:00"),
    ("2024-02-29 10:01", "2024-02-29", "2024-02-29 10:00"),
    ("20260301T100001Z", "20260301", "20260301T100000Z"),
    ("20260301T1001", "20260301", "20260301T1000"),
    ("Sun, 01 Mar 2026 10:00:01 GMT", "Sun, 01 Mar 2026", "Sun, 01 Mar 2026 10:00:00 GMT"),
    ("Sun, 1 Mar 2026 10:00:01 -0500 (EST)", "Sun, 1 Mar 2026", "Sun, 1 Mar 2026 10:00:00 -0500 (EST)"),
    ("01-Mar-2026 10:00:01", "01-Mar-2026", "01-Mar-2026 10:00:00"),
    ("Sun Mar  1 10:00:01 2026", "Sun Mar  1 2026", "Sun Mar  1 10:00:00 2026"),
    ("Sun Mar  1 10:00:01 UTC 2026", "Sun Mar  1 2026", "Sun Mar  1 10:00:00 UTC 2026"),
    ("Sun  1 Mar 10:00:01 GMT 2026", "Sun  1 Mar 2026", "Sun  1 Mar 10:00:00 GMT 2026"),
    ("Sun Mar  1 10:00:01 AM CET 2026", "Sun Mar  1 2026", "Sun Mar  1 10:00:00 AM CET 2026"),
    (
        "Sun Mar 01 2026 10:00:01 GMT+0000 (Coordinated Universal Time)",
        "Sun Mar 01 2026",
        "Sun Mar 01 2026 10:00:00 GMT+0000 (Coordinated Universal Time)",
    ),
    ("3/1/2026, 10:00:01 AM", "3/1/2026", "3/1/2026, 10:00:00 AM"),
    (f"3/1/2026, 10:00:01{Z}PM", "3/1/2026", f"3/1/2026, 10:00:00{Z}PM"),
    ("31/12/2026, 10:00:01", "31/12/2026", "31/12/2026, 10:00:00"),
    ("March 1, 2026 at 10:01 AM", "March 1, 2026", "March 1, 2026 at 10:00 AM"),
    ("March 1st, 2026, at 10:01 a.m.", "March 1st, 2026", "March 1st, 2026, at 10:00 a.m."),
    ("Sunday, March 1, 2026 at 10:00:01 PM UTC", "Sunday, March 1, 2026", "Sunday, March 1, 2026 at 10:00:00 PM UTC"),
    ("Sunday, the 1st of March 2026 10:01", "Sunday, the 1st of March 2026", "Sunday, the 1st of March 2026 10:00"),
    ("1 March 2026, 10:01", "1 March 2026", "1 March 2026, 10:00"),
    ("1 March 2026 - 10:01", "1 March 2026", "1 March 2026 - 10:00"),
    ("01.03.2026 10:00:01", "01.03.2026", "01.03.2026 10:00:00"),
    ("Sonntag, 01.03.2026 10:00:01 Uhr", "Sonntag, 01.03.2026", "Sonntag, 01.03.2026 10:00:00 Uhr"),
    ("So., 1. März 2026 um 10:01 Uhr", "So., 1. März 2026", "So., 1. März 2026 um 10:00 Uhr"),
    ("10:00:01 on March 1, 2026", "March 1, 2026", "10:00:00 on March 1, 2026"),
    ("10:01 AM UTC, Sunday, March 1, 2026", "Sunday, March 1, 2026", "10:00 AM UTC, Sunday, March 1, 2026"),
    ("10:01 2026-03-01", "2026-03-01", "10:00 2026-03-01"),
    ("2026-03-01 10:01 - 12:02", "2026-03-01", "2026-03-01 10:00 - 12:00"),
    ("2026-03-01 10:00:01 UTC (11:00:01 CET)", "2026-03-01", "2026-03-01 10:00:00 UTC (11:00:00 CET)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "day", "hour"), DATED)
def test_dates_with_a_time_are_moments(text, day, hour):
    """B08: whatever stands around them; a full stop after them stays."""
    for before, after in (
        ("", ""),
        ("Today is ", ". Next."),
        ("(", ")"),
        ("Date: ", "\nNext"),
        ("**", "**"),
        ("\n", ", so"),
    ):
        if after == ". Next." and text.endswith("a.m."):
            continue
        assert moments(before + text + after) == [Moment(len(before), len(before) + len(text), day, hour)]


def test_the_day_reads_well():
    """B08: the case itself."""
    text = "Today is 2026-03-01 10:00:01 UTC. You are a helpful assistant."
    assert coarsened(text, moments(text), "day") == "Today is 2026-03-01. You are a helpful assistant."
    text = "We met at 10:00 AM on March 1, 2026."
    assert coarsened(text, moments(text), "day") == "We met on March 1, 2026."
    text = "It is 10:00 AM on March 1, 2026."
    assert coarsened(text, moments(text), "day") == "It is March 1, 2026."


@pytest.mark.parametrize("text", [
    "2026-13-01 10:00:01", "2026-02-30 10:00", "2023-02-29 10:00", "1900-02-29 10:00", "2026-00-10 10:00", "2026-03-00 10:00",
    "2026-03-01 25:61", "2026-03-01 24:00", "2026-03-01 10:60", "March 32, 2026 10:00", "30 February 2026 10:00",
    "13/13/2026, 10:00", "3/1/2026, 13:00 PM", "Sun Feb 30 10:00:01 2026", "Sun Feb 29 10:00:01 2023", "20261301T100001Z", "20260301T250001Z",
    "1850-03-01 10:00", "2026-03-01 10:0", "2026-3-1-10:00",
])  # fmt: skip
def test_what_cannot_be_is_no_moment(text):
    assert moments(text) == []


@pytest.mark.parametrize("text", [
    "1.2026-03-01 10:00:01", "v2026-03-01 10:00", "model-2026-03-01 10:00", "a/2026/03/01 10:00", "x2026-03-01T10:00:01Z",
    "2026-03-01T10:00:01Zulu1", "2026-03-01 10:00:01x", "2026-03-01 10:00:01.x", "2026-03-01 10:00_1", "_2026-03-01 10:00",
    "漢2026-03-01 10:00", "2026-03-01 10:00漢", "12026-03-01 10:00", "2026-03-01 10:00:01:02", "2026-03-01 10:00-x",
    "time 1:10:00:01", "time a@10:00:01", "time $10:00", "time 10:00%", "x20260301T100001Z", "20260301T100001Zx",
    "a10:00 on March 1, 2026", "-10:00 2026-03-01",
])  # fmt: skip
def test_a_moment_touches_no_word(text):
    """Versions, names of models, paths, measures."""
    assert moments(text) == []


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Current time: 10:00:01", "10:00:01"),
        ("current_time=10:00:01 UTC", "10:00:01 UTC"),
        ("currentTime: 10:00", "10:00"),
        ("Time:10:00:01", "10:00:01"),
        ("**Current Time:** 10:00 AM.", "10:00 AM"),
        ("| Local time | 10:00:01 |", "10:00:01"),
        ("The time is now 10:00.", "10:00"),
        ("The time in New York is 10:00", "10:00"),
        ("It is 10:00 AM.", "10:00 AM"),
        ("It's 10:00 in Berlin", "10:00"),
        ("It\u2019s already 10:00", "10:00"),
        ("Now: 10:00:01", "10:00:01"),
        ("Start: time 10:00:01", "10:00:01"),
        ("The clock stands at five past. The clock says 10:05", "10:05"),
        ("Currently 10:00 CET", "10:00 CET"),
        ("We are currently in Berlin where people read 10:00:01", "10:00:01"),
        ("When you answer, know that it is 10:00", "10:00"),
        ("current time (10:00:01)", "(10:00:01)"),
        ("time f(10:00:01)", "10:00:01"),
        ("time (10:00:01)x", "10:00:01"),
        ("time 2026-03-01 (10:00:01)x", "10:00:01"),
        ("2026-03-01 9:00 (10:00:01)x", "2026-03-01 9:00"),
        ("Time: 10:00 UTC (11:00 CET)", "10:00 UTC (11:00 CET)"),
        ("Time: 10:00:01 UTC / 11:00:01 CET", "10:00:01 UTC / 11:00:01 CET"),
        ("Aktuelle Uhrzeit: 10:00 Uhr", "10:00 Uhr"),
        ("It is Sunday 10:00 AM", "Sunday 10:00 AM"),
        ("It is March 1, 10:00 AM", "March 1, 10:00 AM"),
    ],
)
def test_a_bare_time_that_is_called_the_present_is_one(text, moment):
    assert said(text) == [moment]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Current time: 10:00:01 UTC.", "Current time: ."),
        ("current time (10:00:01) here", "current time  here"),
        ("It is Sunday, 10:00 AM in Berlin", "It is Sunday in Berlin"),
        ("It is March 1, 10:00 AM.", "It is March 1."),
    ],
)
def test_a_bare_time_has_no_day(text, day):
    assert coarsened(text, moments(text), "day") == day


@pytest.mark.parametrize("text", [
    "10:00:01", "Meet me at 10:00 AM", "Open 9:00-17:00", "We are open 9:00 to 17:00", "Opening time: 9:00", "Lunch time is 12:30",
    "The closing time is 17:00:00", "It is open until 17:00", "It is closed after 5:00 PM", "The time between 9:00 AM and 5:00 PM",
    "Time: 9:00-12:00", "Time: 9:00 - 12:00", "Times and time: 9:00, 10:00", "Time: 09:00:00 - 12:00:00",
    "as for it, is 10:00 AM fine", "If it is 10:00 AM, greet", "when the time is 10:00 AM",
    "At that time. Later 10:00:01", "currently at 10:00:01", "It is written in John 3:16", "now scale 16:09 images",
    "Restart every time at 02:00:00", "time limit: 0:30", "Time zone: UTC+01:00", "time offset -05:00", "timer 10:00",
    "known 10:00:01", "time\n10:00:01", "The time\nwith 10:00:01", "now 11:30 PM:10:00:01 x", "now 11:30 PM,10:00:01 x", "The response time is 0:30:00", "nowhere 10:00 AM", "cut-off time 10:00",
    "Check-in time: 15:00", "It is from 9:00 AM", "10:00:01 is the time", "Today 10:00:01",
])  # fmt: skip
def test_opening_hours_conditions_durations_are_none(text):
    assert moments(text) == []


@pytest.mark.parametrize("text", [
    "`{}`", "a\n```\n{}\n```", "a\n```\n{}", "> {}", 'say "now {}"', "\u201c{}\u201d", "<log>\n{}\n</log>", "<example>{}</example>",
    "a\n\n    {}", "# Example\n{}", "{} INFO started", "[INFO] {} started", "{} came\n{} went", "e.g. {}",
    "the format 2026 is like {}", "Example:\n{}", "for example, {}",
])  # fmt: skip
def test_what_is_shown_is_left_alone(text):
    """B08: code, quoted logs, quotations, examples."""
    assert moments(text.replace("{}", "2026-03-01 10:00:01 UTC"), dates=True) == []
    assert moments("now 2026-03-01 10:00:01 UTC\n\n" + text.replace("{}", "2026-03-01 10:00:01 UTC")) != []


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("Today is 2026-03-01.", "2026-03-01"),
        ("Today is Sunday, March 1, 2026", "Sunday, March 1, 2026"),
        ("Current date: 1 March 2026\n", "1 March 2026"),
        ("current_date=2026-03-01", "2026-03-01"),
        ("Date: 3/1/2026", "3/1/2026"),
        ("It is now March 1st, 2026", "March 1st, 2026"),
        ("Heute ist Sonntag, 01.03.2026", "Sonntag, 01.03.2026"),
        ("Knowledge cutoff: 2024-06-01\nCurrent date: 2026-03-01", "2026-03-01"),
        ("Today's date is 2026/03/01 in Berlin", "2026/03/01"),
    ],
)
def test_bare_dates_that_are_called_today(text, date):
    at = text.rindex(date)
    assert moments(text, dates=True) == [Moment(at, at + len(date), date, date)]
    assert moments(text) == []


@pytest.mark.parametrize("text", [
    "2026-03-01", "Released on 2026-03-01", "Release date: 2026-03-01", "knowledge cutoff date: 2026-03-01", "Update: 2026-03-01",
    "today until 2026-03-01", "now valid since March 1, 2026", "If the date is 2026-03-01, say so", "Today is 2026-02-30",
    "current model: gpt-4o-2024-05-13", "Today is 12026-03-01", "Today is 2026-03-01x", "date 2026", "born today 1 March 1826",
    "Due date: 2026-03-01", "Today I am 2026",
])  # fmt: skip
def test_other_dates_are_none(text):
    assert moments(text, dates=True) == []


@pytest.mark.parametrize("text", [
    "2026-03-01 {} x", "time: {}", "{} 2026-03-01", "{} on 2026-03-01 10:00 x", "10:00 on 2026-03-01 {} x", "Mar 1 {} 2026",
])  # fmt: skip
@pytest.mark.parametrize("join", [" ", " - ", ", ", " on ", " to "])
def test_a_table_of_times_is_no_moment(text, join):
    """However many clocks are joined, no moment is longer than a line that somebody would write."""
    long, short = (text.replace("{}", join.join(["10:00:01 UTC"] * count)) for count in (40, 3))
    assert moments(long) == [] or join == " on "
    assert all(moment.end - moment.start < 400 for moment in moments(long))
    if join != " on " and "time" not in text:
        assert len(moments(short)) == 1
    for unit in ("day", "hour"):
        once = coarsened(long, moments(long), unit)
        assert coarsened(once, moments(once), unit) == once


def test_dates_and_moments_together():
    text = "Today is 2026-03-01. Current time: 10:00:01 UTC.\nNow it is 2026-03-01 10:00"
    assert said(text, dates=True) == ["2026-03-01", "10:00:01 UTC", "2026-03-01 10:00"]
    assert said(text) == ["10:00:01 UTC", "2026-03-01 10:00"]


PARTS = (
    "2026-03-01", "10:00:01", "10:00", "11:30 PM", "UTC", "Z", "+01:00", "(", ")", ",", " ", "  ", "\n", "T", "at", "on", "to", "and",
    "-", " - ", "/", "now", "time", "it", "is", "it is", "Sunday", "March 1", "March 1, 2026", "1 March", "2026", "if", "until",
    "after", ".", ";", ":", "`", '"', ">", "INFO", "[", "]", "e.g.", "GMT+0000", "(Central European Time)", "20260301T100001Z",
    "current", "clock", "Today is", "a.m.", "AM", "Uhr", "01.03.2026", "3/1/2026", "9:00-17:00", "x", "é", "漢", Z, "\ud800", "\0",
    "\t", "\n\n    ", "```", "<log>", "</log>", "10:59:59.123", "m=+0.01", "local time", "Europe/Berlin", "the", "of", "by", "1",
    "opening", "date", "2026-02-30", "25:61", "Mar  1", "Sun", "date:", "time:", "AT", "Mon", "–", "|", "e.g. ", "like", "# Example", "Example", "for example",
)  # fmt: skip
WORDS = st.sampled_from(PARTS)
texts = st.one_of(
    st.lists(WORDS, max_size=14).map(" ".join), st.lists(WORDS, max_size=14).map("".join), st.text(max_size=60)
)


@given(texts, st.booleans())
def test_moments_are_sorted_apart_and_set_off(text, dates):
    found = moments(text, dates=dates)
    regions = quoted.regions(text)
    assert all(one.end <= other.start for one, other in pairwise(found))
    for moment in found:
        assert 0 <= moment.start < moment.end <= len(text)
        assert "\n" not in text[moment.start : moment.end]
        assert not quoted.touches(regions, moment.start, moment.end)
        for neighbour in (text[: moment.start][-1:], text[moment.end :][:1]):
            assert not (neighbour.isalnum() or neighbour == "_")


@settings(max_examples=500)
@given(texts, st.booleans(), st.sampled_from(["day", "hour"]))
def test_coarsening_twice_is_coarsening_once(text, dates, unit):
    """B08: what is left after the clock was taken off never reads as another clock."""
    found = moments(text, dates=dates)
    event(f"{min(len(found), 2)} found")
    once = coarsened(text, found, unit)
    assert coarsened(once, moments(once, dates=dates), unit) == once


@pytest.mark.parametrize("text", [
    "10:00 on 11:30 PM 2026-03-01 10:00:01", "9:00 on 10:00 on 11:00 on 2026-03-01", "x 10:00:01 1 March 10:59:59.123 2026 y",
    "11:30 PM Sun 10:00 3/1/2026", "10:00 2026-03-01T11:00", "toSun10:59:59.123  March 1, 2026  11:30 PM", "10:00 on March 1, 2026 11:00",
    "Sun Mar 1 10:00 2026 11:00", "time at 2026-03-01 10:00 * 11:00:01", "now 2026-03-01 10:00 to 11:00 x 12:00:01",
    "if 2026-03-01 10:00 now 11:00:01", "now 11:30 PM:10:00:01 x", "it is 10:00:01 is 11:00", "2026-03-01 10:00 AT 11:00",
    "2026-03-01 10:00 (11:00)", "2026-03-01 (10:00) 11:00", "now 11:30 PM m=+0.01 m=+0.01", "time: March 1 10:00, 2026 10:00",
    "time:10:00:01(Central European Time)10:00:01", "now # Example 10:59:59 a 20260301T100001Z", "12:00 [2026-03-01 10:00:01]", "time: 9:00 - 17:00 2026-03-01", "2026-03-01 10:00 and 12:00 2026-04-01",
])  # fmt: skip
@pytest.mark.parametrize("unit", ["day", "hour"])
def test_joined_clocks_and_dates_are_coarsened_once(text, unit):
    """Found by the property below, or nearly: what is left must not read as a new moment."""
    once = coarsened(text, moments(text), unit)
    assert coarsened(once, moments(once), unit) == once


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("time at 2026-03-01 10:00 * 11:00:01", ["2026-03-01 10:00", "11:00:01"]),
        ("now 2026-03-01 10:00 to 11:00 x 12:00:01", ["2026-03-01 10:00 to 11:00", "12:00:01"]),
        ("if 2026-03-01 10:00 now 11:00:01", ["2026-03-01 10:00", "11:00:01"]),
        ("10:00 on 11:30 PM 2026-03-01", ["10:00 on 11:30 PM 2026-03-01"]),
        ("toSun10:59:59.123  March 1, 2026  11:30 PM", ["March 1, 2026  11:30 PM"]),
    ],
)
def test_a_moment_before_undoes_nothing(text, found):
    assert said(text) == found


@given(texts, st.sampled_from(DATED), texts)
def test_a_planted_moment_is_found_with_its_own_bounds(before, case, after):
    """Set off by spaces and by words that join nothing, in any text that does not show it."""
    text, day, hour = case
    whole = f"{before}\nxyz {text} xyz {after}"
    start = len(before) + 5
    assume(not quoted.touches(quoted.regions(whole), start, start + len(text)))
    event("said")
    assert Moment(start, start + len(text), day, hour) in moments(whole)


@given(
    texts,
    st.sampled_from(DATED),
    st.sampled_from(["`{}`", '"{}"', "\u201c{}\u201d", "<log>{}</log>", "\n> {}\n", "\n```\n{}\n```\n"]),
)
def test_a_planted_moment_that_is_shown_is_not_found(before, case, frame):
    before = before.replace("`", "").replace('"', "").replace("\u201c", "")
    whole = f"{before}\n{frame.format(case[0])} after"
    assert not any(moment.start > len(before) for moment in moments(whole, dates=True))


CHUNKED = st.lists(
    st.sampled_from([
        "Now 2026-03-01 10:00:01.", "time: 10:00", "e.g.", "2026-03-01 10:00:01 ERROR x", "```", "> ", "Today is March 1, 2026",
        "request id: abc123 ", "0f8fad5b-d9cb-469f-a165-70867728950e", "at", " ", "# Example", "<log>", "</log>", "https://a/", "tel",
        "1772359201", "is it\r",
    ]),
    max_size=8,
).map(" ".join)  # fmt: skip


@given(st.lists(CHUNKED, max_size=12).map("\n".join), st.booleans())
def test_the_size_of_chunks_makes_no_difference(text, dates):
    """Each line decides for itself: in chunks of one line, of several, or as a whole, the same is found."""
    found = []
    for size in (0, 40, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chunks, "SIZE", size)
            found.append((moments(text, dates=dates), idents(text)))
    assert found[0] == found[1] == found[2]


def test_chunks_are_whole_lines_and_the_whole_text():
    text = "".join("x" * (n % 90) + "\n" for n in range(300)) + "end"
    pieces = list(chunks.chunks(text))
    assert "".join(piece for _, piece in pieces) == text
    assert all(text.startswith(piece, at) for at, piece in pieces)
    assert all(piece.endswith("\n") and len(piece) >= chunks.SIZE for _, piece in pieces[:-1])
    assert list(chunks.chunks("")) == []
