"""Who asked not to be asked for a while: what `Retry-After` says, and a table of it that does not grow."""

import pytest

from cacheproxy.core.rests import LONGEST, Rests, retry_after

DATE = (b"Date", b"Wed, 21 Oct 2026 07:28:00 GMT")


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ((), None), (((b"Retry-After", b"7"),), 7.0), (((b"retry-after", b" 7 "),), 7.0), (((b"Retry-After", b"0"),), 0.0),
        (((b"Retry-After", b"9" * 400),), LONGEST), (((b"Retry-After", b"soon"),), None), (((b"Retry-After", b"-5"),), None),
        (((b"Retry-After", b"1.5"),), None), (((b"Retry-After", b""),), None), (((b"Retry-After", b"\xff\xfe"),), None),
        (((b"Retry-After", b"Wed, 21 Oct 2026 07:28:30 GMT"), DATE), 30.0),
        (((b"Retry-After", b"Wed, 21 Oct 2026 09:28:30 GMT"), DATE), LONGEST),
        (((b"Retry-After", b"Wed, 21 Oct 2026 07:00:00 GMT"), DATE), 0.0),
        (((b"Retry-After", b"Wed, 21 Oct 2026 07:28:30 GMT"),), None),
        (((b"Retry-After", b"Wed, 99 Oct 99999999999 07:28:30 GMT"), DATE), None),
    ],
)  # fmt: skip
def test_seconds_that_an_answer_asks_for(fields, seconds):
    assert retry_after(fields) == seconds


def test_each_is_left_alone_until_its_time():
    rests = Rests()
    assert not rests
    rests.put("a", 5.0)
    assert [rests.has("a", now) for now in (0.0, 4.9, 5.0, 0.0)] == [True, True, False, False]
    assert not rests.has("b", 0.0)
    assert not rests


def test_of_too_many_the_oldest_are_forgotten():
    rests = Rests(most=3)
    for name in "abcad":
        rests.put(name, 9.0)
    assert [rests.has(name, 0.0) for name in "abcd"] == [True, False, True, True]
    assert repr(rests) == "<Rests 3 of 3>"
