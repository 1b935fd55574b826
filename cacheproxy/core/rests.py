"""Who asked not to be asked for a while: `Retry-After` of an answer, and a bounded table of whom it holds for. Pure."""

from collections import OrderedDict
from collections.abc import Hashable
from email.utils import mktime_tz, parsedate_tz

from cacheproxy.core import fields as http_fields
from cacheproxy.core.model import Fields

LONGEST = 60.0
"""Seconds that are believed."""
MOST = 4096


def retry_after(fields: Fields) -> float | None:
    """The seconds that an answer asks for, `LONGEST` at most (RFC 9110 section 10.2.3); a time counts from its `Date`.
    None if it does not say, or not so that it can be read."""
    value = http_fields.first(fields, b"retry-after")
    if value is None:
        return None
    text = value.strip()
    if text.isdigit():
        return min(float(text[:9]), LONGEST)
    until, since = _time(text), _time(http_fields.first(fields, b"date"))
    if until is None or since is None:
        return None
    return min(max(0.0, until - since), LONGEST)


def _time(value: bytes | None) -> float | None:
    parts = None if value is None else parsedate_tz(value.decode("latin-1"))
    try:
        return None if parts is None else float(mktime_tz(parts))
    except (ValueError, OverflowError):
        return None


class Rests:
    """Until when each is to be left alone, in seconds of a clock that the caller reads. Of too many the oldest are
    forgotten."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._until: OrderedDict[Hashable, float] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Rests {len(self._until)} of {self._most}>"

    def put(self, name: Hashable, until: float) -> None:
        """Leave `name` alone until then."""
        self._until[name] = until
        self._until.move_to_end(name)
        if len(self._until) > self._most:
            self._until.popitem(last=False)

    def has(self, name: Hashable, now: float) -> bool:
        """Whether it is to be left alone now."""
        until = self._until.get(name)
        if until is None:
            return False
        if until <= now:
            del self._until[name]
            return False
        return True

    def __bool__(self) -> bool:
        return bool(self._until)
