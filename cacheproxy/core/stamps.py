"""The written forms of dates, clocks and zones, and whether their numbers can be. Pure.

Patterns are for one line and have a greatest length; they are meant to be tried at one place or in a short window.
"""

import re

SPACE = "[ \u00a0\u202f]"
"""What stands between the parts of a moment: never a line break. Browsers write U+202F before AM and PM."""
_START = (
    r"(?<![\w)\]#$%&@+/\\~\u2013\u2014-])(?<![\w)\]][.,])"
    r"(?:(?<![\w)\]]:)|(?<=time:)|(?<=date:)|(?<=clock:)|(?<=now:)|(?<=today:))"
)
"""Where a date or clock may begin: not within a word, a version, a path, an address or an offset."""
END = r"(?!\w|[-/:+@~.,][\w]|%)"
"""Where it may end."""
_MONTHS = (
    "jan(?:uary?|\\.)?|jänner|feb(?:ruary?|\\.)?|mar(?:ch|\\.)?|märz?|apr(?:il|\\.)?|may|mai|june?|juni|july?|juli"
    "|aug(?:ust|\\.)?|sept?(?:ember|\\.)?|o[ck]t(?:ober|\\.)?|nov(?:ember|\\.)?|de[cz](?:ember|\\.)?"
)
_NUMBERS = {
    name: number
    for number, names in enumerate(
        ("jan jän", "feb", "mar mär", "apr", "may mai", "jun", "jul", "aug", "sep", "oct okt", "nov", "dec dez"), 1
    )
    for name in names.split()
}
_WEEKDAY = (
    "(?:mon(?:day|tag)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?"
    "|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag|(?:mo|di|mi|do|fr|sa|so)[.,])"
)
_ON = f"(?:{_WEEKDAY}(?:[.,]|\\.,)?(?:{SPACE}the)?{SPACE}{{1,2}})?"
_DAY = "[0-9]{1,2}(?:st|nd|rd|th|\\.)?"
_YEAR = "(?:19|20)[0-9]{2}"
_FIRST, _SECOND = (
    f"(?P<month1>{_MONTHS}){SPACE}{{1,2}}(?P<day1>[0-9]{{1,2}})(?:st|nd|rd|th)?",
    (
        f"(?P<day2>[0-9]{{1,2}})(?:st|nd|rd|th|\\.)?(?:{SPACE}of)?(?P<dash>[{SPACE[1:-1]}-]){SPACE}?(?P<month2>{_MONTHS})"
    ),
)
_DATE = (
    f"{_ON}(?:(?P<year0>{_YEAR})(?P<sign0>[-/.])(?P<month0>[0-9]{{1,2}})(?P=sign0)(?P<day0>[0-9]{{1,2}})"
    f"|{_FIRST},?{SPACE}{{1,2}}(?P<year1>{_YEAR})"
    f"|{_SECOND}(?:,?{SPACE}{{1,2}}|-)(?P<year2>{_YEAR})"
    f"|(?P<one>[0-9]{{1,2}})(?P<sign3>[-/.])(?P<two>[0-9]{{1,2}})(?P=sign3)(?P<year3>{_YEAR}))"
)
BEFORE = re.compile(
    f"{_START}(?P<date>{_DATE})(?:[Tt]|{SPACE}\\(|,?{SPACE}{{1,2}}(?:(?:at|um|@|[-\u2013\u2014|]){SPACE}{{1,2}})?)\\Z",
    re.IGNORECASE,
)
"""A date with its year and what joins it to the clock after it."""
YEARLESS = re.compile(
    f"{_START}(?P<date>{_ON}(?:{_FIRST}|{_SECOND})),?{SPACE}{{1,2}}(?:(?:at|um){SPACE})?\\Z", re.IGNORECASE
)
"""A date without its year before a clock: the year may come after it, as in ``Sun Mar  1 10:00:01 UTC 2026``."""
WEEKDAY = re.compile(f"{_START}(?P<date>{_WEEKDAY}),?{SPACE}{{1,2}}(?:(?:at|um){SPACE})?\\Z", re.IGNORECASE)
_TO_DATE = f"(?:,?{SPACE}{{1,2}}(?:(?P<on>on|am|of){SPACE}(?:the{SPACE})?|[-\u2013\u2014|]{SPACE})?)"
TO_DATE = re.compile(_TO_DATE + _ON, re.IGNORECASE)
"""What joins a clock to a date after it, the weekday included."""
AFTER = re.compile(f"{_TO_DATE}(?P<date>{_DATE}){END}", re.IGNORECASE)
"""What joins a clock to a date after it, and that date."""
YEAR = re.compile(f",?{SPACE}{{1,2}}(?P<year>{_YEAR}){END}")
DATE = re.compile(f"{_START}{_DATE}{END}", re.IGNORECASE)
COMPACT = re.compile(
    rf"{_START}(?P<date>(?P<year0>{_YEAR})(?P<month0>[0-9]{{2}})(?P<day0>[0-9]{{2}}))T(?P<hour>[01][0-9]|2[0-3])"
    rf"[0-5][0-9](?P<second>[0-5][0-9](?:[.,][0-9]{{1,12}})?)?(?P<zone>Z|[+-][0-9]{{2}}:?(?:[0-9]{{2}})?)?{END}"
)
"""ISO 8601's basic form: ``20260301T100001Z``."""

_OFFSET = "[+\u2212-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?"
_NAMES = (
    "(?:UTC|GMT|CES?T|E[DS]T|C[DS]T|M[DS]T|P[DS]T|AK[DS]T|HST|BST|WES?T|EES?T|MSK|TRT|IST|PKT|ICT|WIB|SGT|HKT|JST|KST"
    "|A[CEW][DS]T|NZ[DS]T|BRT|ART|SAST|EAT|WAT|CAT|GST|ET|PT|UT|Zulu|MESZ|MEZ)(?![\\w])"
)
_PLACE = "(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc|US)/[A-Za-z0-9_+/-]{1,40}"
_SPOKEN = "(?:(?:[A-Z][a-z]{1,20} ){1,4}Time|[A-Z][a-zäöü]{2,30} [A-Z][a-z]{0,12}zeit)(?!\\w)"
_NAMED = f"(?:(?:UTC|GMT){SPACE}?[+\u2212-][0-9]{{1,2}}(?::?[0-9]{{2}})?(?![\\w:])|{_NAMES}|{_PLACE}|{_SPOKEN})"
_ZONE = (
    f"(?:(?:[Zz](?!\\w)|{SPACE}?{_OFFSET}(?![\\w:])|{SPACE}?{_NAMED}|{SPACE}(?i:local time)(?!\\w))"
    f"(?:{SPACE}{_NAMED})?)?(?:{SPACE}?[(\\[](?:{_NAMED}|{_OFFSET}|(?i:local time|local))[)\\]])?"
)
CLOCK = re.compile(
    "(?P<hour>[01]?[0-9]|2[0-3])(?P<minute>:[0-5][0-9])(?P<second>:(?:[0-5][0-9]|60)(?:[.,][0-9]{1,12}+)?+)?+"
    f"(?:(?P<half>{SPACE}?(?:[AaPp][Mm](?!\\w)|[AaPp]\\.[Mm]\\.))|{SPACE}(?:Uhr|h)(?!\\w))?+"
    f"(?P<zone>(?>{_ZONE}))(?P<run> m=[+-][0-9]{{1,12}}+(?:\\.[0-9]{{1,9}}+)?+)?+{END}"
)
"""A time of day with all that belongs to it, tried where it begins. `run`: Go's monotonic clock."""
FIRST = re.compile(f"{_START}(?=[0-9])", re.IGNORECASE)
"""What has to hold before a clock that has no date at it."""
MORE = re.compile(
    f"(?:,?{SPACE}{{1,2}}(?:(?:at|um|@|to|till|until|and|or|through|bis|und|[-\u2013\u2014|/~&]){SPACE}{{1,2}}|\\()?"
    f"|{SPACE}?[-\u2013\u2014~/,;|]{SPACE}?|T)(?=[0-9])",
    re.IGNORECASE,
)
"""What joins a clock or a date to a clock after it: all that `BEFORE` ends with, lists and ranges."""
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_possible(date: re.Match[str], year: int | None = None) -> bool:
    """Whether the day that a pattern of this module found is in the calendar. `year`: where the pattern has none."""
    found = date.groupdict()
    if found.get("one"):
        one, two = int(found["one"]), int(found["two"])
        return _exists(int(found["year3"]), one, two) or _exists(int(found["year3"]), two, one)
    for form in "012":
        if month := found.get(f"month{form}"):
            said = found.get(f"year{form}")
            number = int(month) if month.isdecimal() else _NUMBERS[month[:3].lower()]
            return _exists(int(said) if said else year or 2000, number, int(found[f"day{form}"]))
    return True


def _exists(year: int, month: int, day: int) -> bool:
    if not (1 <= month <= 12 and 1 <= day <= _LENGTHS[month - 1]):
        return False
    return (month, day) != (2, 29) or (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))


def is_half_day(clock: re.Match[str]) -> bool:
    """Whether the hour fits the AM or PM at it."""
    return not clock["half"] or int(clock["hour"]) <= 12


def to_the_hour(clock: re.Match[str]) -> str:
    """The clock's text with minutes and seconds zero, fractions cut, zone kept, Go's monotonic clock zero."""
    minutes = ":00:00" if clock["second"] else ":00"
    after = clock.end("second" if clock["second"] else "minute")
    return clock["hour"] + minutes + clock.string[after : clock.end("zone")] + (" m=+0" if clock["run"] else "")
