"""How one backend fares, by what became of the requests that it was given. Pure: time and chance come as arguments.

| state     | since                                                                    | it is given                  |
|-----------|--------------------------------------------------------------------------|------------------------------|
| well      | it was well, or an attempt has shown that it is again                    | its share                    |
| open      | `failures` in a row could not be connected to, or had no answer          | nothing                      |
| ejected   | `failures` in a row were errors or broke off, or half of a window's were | nothing while others do well |
| half-open | the time of either is over, and it answers something, if that is asked   | one request at a time        |

Only who cannot be connected to is left alone whoever else there is: trying it is of no use and costs nothing. One that
is silent or fails is passed over for the sake of others; where there are none, its callers get what it says, or how
long it is silent. Beside the states a backend may *rest*: it is passed over for a while, while others are there.

What was begun in one state is no evidence in the next: a verdict comes with the `era` in which its request began.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum

REST = 1.0
"""Seconds that a backend rests that could not be connected to."""
LONGEST_REST = 60.0
LONGEST_OPEN = 30.0
LONGEST_UNREACHABLE = 5.0
"""Where trying costs nobody anything: a connection is refused at once."""
LONGEST_EJECTION = 60.0
SOON = 5
"""So many times in a row one that refuses connections is tried again after `open`, before the pauses grow."""
RELAPSE = 60.0
"""Seconds within which a failure counts as the same trouble once more."""
WINDOW = 10.0
"""Seconds of each half of the window in which errors are counted."""
ENOUGH = 20
"""Answers in a window that can be judged by their rate of errors."""
FIRST_SHARE = 0.1
"""Of its weight, when it has just become well."""
FAILED = frozenset({500, 502, 503, 504})
"""Statuses that speak of the backend, not of the request."""


class State(StrEnum):
    """As in the table."""

    WELL = "well"
    OPEN = "open"
    EJECTED = "ejected"
    HALF_OPEN = "half-open"


class Cause(Enum):
    """Why it is not well."""

    UNREACHABLE = "cannot be connected to"
    SILENT = "does not answer"
    FAILING = "answers with errors or breaks off"


@dataclass(frozen=True, slots=True)
class Terms:
    """`failures`: in a row; `open`, `ejection`: seconds of the first time, they grow with each; `slow_start`: seconds
    in which the weight of one that has become well rises, 0 for at once."""

    failures: int = 5
    open: float = 1.0
    ejection: float = 10.0
    slow_start: float = 10.0


class Health:
    """One backend's. Methods that tell what happened say whether its state has changed; `now` is in seconds, `chance`
    of 0 to 1 shortens a pause by up to a fifth."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self.era = 0
        self.asked = False
        """Whether somebody asks it for something that has no price before it is given a request for a trial."""
        self.ejections = 0
        """How many times it was ejected or opened."""
        self.cause: Cause | None = None
        self._until = 0.0
        self._proven = True
        self._asked_until = self._unreached_until = 0.0
        self._times = 0
        self._trying = self._by_probe = False
        self._well_since: float | None = None
        self._refusals = 0
        self._silences = 0
        self._errors = _Errors()

    def __repr__(self) -> str:
        return f"<Health {self.cause.value if self.cause else 'well'}, {self.ejections} ejections>"

    # --- what it is ---------------------------------------------------------------------------------------------------

    def state(self, now: float) -> State:
        if self.cause is None:
            return State.WELL
        if not self._is_out(now):
            return State.HALF_OPEN
        return State.EJECTED if self.cause is Cause.FAILING else State.OPEN

    def is_able(self, now: float) -> bool:
        """It may be given a request as any other, or as its next trial."""
        if self.cause is None:
            return not self.is_resting(now)
        return not (self._is_out(now) or self._trying)

    def wants_proof(self, now: float) -> bool:
        """Its time is over, and it has yet to be asked."""
        return self.cause is not None and now >= self._until and not self._proven

    def is_resting(self, now: float) -> bool:
        """It is passed over for a moment."""
        return now < max(self._asked_until, self._unreached_until)

    def is_shut(self, now: float) -> bool:
        """It must not be given a request, whatever else there is."""
        return self.cause is Cause.UNREACHABLE and not self.is_able(now)

    def again(self, now: float) -> float:
        """Seconds until it may be given a request again, if nothing happens before."""
        until = self._until if self.cause is not None else max(self._asked_until, self._unreached_until)
        return max(0.0, until - now)

    def share(self, now: float) -> float:
        """The part of its weight that counts now."""
        if self._well_since is None or self.cause is not None:
            return 1.0
        passed = now - self._well_since
        if passed >= self._terms.slow_start:
            return 1.0
        return FIRST_SHARE + (1 - FIRST_SHARE) * max(0.0, passed) / self._terms.slow_start

    # --- trials -------------------------------------------------------------------------------------------------------

    def begin(self, now: float, *, light: bool = False) -> bool:
        """It is given a request; whether that is a trial. `light`: one that can show no more than that it is there."""
        trial = self.cause is not None and not (self._is_out(now) or self._trying)
        trial = trial and (not light or self.cause is Cause.UNREACHABLE)
        self._trying = self._trying or trial
        return trial

    def leave(self, era: int) -> None:
        """A trial is over of which nothing was learned."""
        if era == self.era:
            self._trying = False

    # --- what happened ------------------------------------------------------------------------------------------------

    def connected(self, now: float) -> bool:
        """It took a connection."""
        self._refusals = 0
        self._unreached_until = 0.0
        return self.cause is Cause.UNREACHABLE and self._recover(now)

    def refused(self, now: float, era: int, chance: float, *, cheap: bool) -> bool:
        """It could not be connected to. `cheap`: that was known at once."""
        self._unreached_until = now + REST
        if self._is_known(now, era):
            return False
        self._refusals += 1
        if self.cause is None and self._refusals < self._terms.failures:
            return False
        slow, most = (SOON, LONGEST_UNREACHABLE) if cheap else (1, LONGEST_OPEN)
        return self._fall(Cause.UNREACHABLE, now, chance, slow, most)

    def silent(self, now: float, era: int, chance: float, *, spare: bool) -> bool:
        """It took a request and gave no answer. `spare`: others are there to be given what it is not."""
        if self._is_known(now, era):
            return False
        self._silences += 1
        if self.cause is None and (self._silences < self._terms.failures or not spare):
            return False
        return self._fall(Cause.SILENT, now, chance, 1, LONGEST_OPEN)

    def answered(self, now: float, era: int, status: int, chance: float, *, spare: bool) -> bool:
        """The head of an answer has come."""
        if era != self.era:
            return False
        self._silences = self._refusals = 0
        if status in FAILED:
            return self.failed(now, era, chance, spare=spare)
        return self.cause in (Cause.UNREACHABLE, Cause.SILENT) and self._recover(now)

    def failed(self, now: float, era: int, chance: float, *, spare: bool) -> bool:
        """An answer was an error of the backend's, or broke off. `spare`: it may be ejected, others are there."""
        if self._is_known(now, era):
            return False
        self._errors.note(now, failed=True)
        if self.cause is None and not (spare and self._errors.are_too_many(self._terms.failures)):
            return False
        return self._fall(Cause.FAILING, now, chance, 1, LONGEST_EJECTION)

    def ended(self, now: float, era: int) -> bool:
        """An answer came whole that is no error of the backend's."""
        if era != self.era:
            return False
        self._errors.note(now, failed=False)
        return self.cause is Cause.FAILING and not self._is_out(now) and self._recover(now)

    def probed(self, now: float, *, well: bool, reached: bool, until: float) -> bool:
        """It was asked how it is: once and well, or twice and not, which holds `until` it is asked again. That it is
        well says nothing of one that requests have found silent or failing."""
        if not well:
            if self.cause is Cause.FAILING:
                return False
            changed = self._fall(Cause.SILENT if reached else Cause.UNREACHABLE, now, 0.0, 1, 0.0)
            self._until, self._by_probe = max(self._until, until), True
            return changed
        self._refusals = 0
        return (self.cause is Cause.UNREACHABLE or self._by_probe) and self._recover(now)

    def proved(self, now: float, era: int, chance: float, *, answers: bool) -> None:
        """It was asked for something, since its time was over: whether it answered."""
        if era != self.era or self.cause is None:
            return
        if answers:
            self._proven = True
        else:
            self._fall(self.cause, now, chance, 1, LONGEST_EJECTION if self.cause is Cause.FAILING else LONGEST_OPEN)

    def rest(self, now: float, seconds: float) -> None:
        """It asked not to be asked for so long."""
        self._asked_until = max(self._asked_until, now + min(seconds, LONGEST_REST))

    # --- changes ------------------------------------------------------------------------------------------------------

    def _is_known(self, now: float, era: int) -> bool:
        """What went wrong began in another state, or is what this state is for."""
        return era != self.era or (self.cause is not None and self._is_out(now))

    def _is_out(self, now: float) -> bool:
        return now < self._until or not self._proven

    def _fall(self, cause: Cause, now: float, chance: float, slow: int, most: float) -> bool:
        changed = self.cause is None
        self._proven = not self.asked or cause is Cause.UNREACHABLE
        relapsed = self._well_since is not None and now - self._well_since < RELAPSE
        self._times = self._times + 1 if not changed or relapsed else 1
        self.cause = cause
        if cause is Cause.FAILING:
            pause = min(self._terms.ejection * self._times, max(most, self._terms.ejection))
        else:
            pause = min(self._terms.open * 2 ** min(max(0, self._times - slow), 16), max(most, self._terms.open))
        self._until = now + pause * (1 - min(max(chance, 0.0), 1.0) / 5)
        self._turn()
        self.ejections += changed
        return changed

    def _recover(self, now: float) -> bool:
        self.cause = None
        self._well_since = now
        self._turn()
        return True

    def _turn(self) -> None:
        """What runs now says nothing of what comes."""
        self.era += 1
        self._trying = self._by_probe = False
        self._refusals = self._silences = 0
        self._errors = _Errors()


class _Errors:
    """Errors among the last answers: in a row, and in a window of two halves."""

    def __init__(self) -> None:
        self._in_a_row = 0
        self._half_since: float | None = None
        self._now = self._before = (0, 0)

    def note(self, now: float, *, failed: bool) -> None:
        self._in_a_row = self._in_a_row + 1 if failed else 0
        since = now if self._half_since is None else self._half_since
        if now - since >= WINDOW:
            self._before = self._now if now - since < 2 * WINDOW else (0, 0)
            self._now, since = (0, 0), now
        self._half_since = since
        answers, errors = self._now
        self._now = (answers + 1, errors + failed)

    def are_too_many(self, in_a_row: int) -> bool:
        answers, errors = (a + b for a, b in zip(self._now, self._before, strict=True))
        return self._in_a_row >= in_a_row or (answers >= ENOUGH and 2 * errors >= answers)
