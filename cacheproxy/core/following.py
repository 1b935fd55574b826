"""What becomes of those who wait for another caller's answer: one table. Pure.

| the producer                                     | who waits                                          |
|--------------------------------------------------|----------------------------------------------------|
| gives a stream, and a stream is wanted           | is given it as it comes                            |
| has given a whole answer that was kept           | reads it                                           |
| has given a whole answer that had no room        | reads it too                                       |
| failed                                           | waits for one new producer; at the second failure  |
|                                                  | is told of it                                      |
| gives what must not be shared                    | asks for itself, and so do later ones for a while  |
| gives a stream without the usage that is wanted  | asks for itself                                    |
"""

from enum import Enum

from cacheproxy.core.outcome import Reason

MOST_FAILURES = 2
"""Producers that fail, after which those who wait are told what the last one was told."""
_FAILED = frozenset({408, 429, 500, 502, 503, 504, 529})
"""Statuses that another try may not meet."""
_COMPLETE = frozenset({
    None, Reason.STORE_TROUBLE, Reason.TOO_LARGE, Reason.RECORDING_BUDGET, Reason.PURGED, Reason.SAME_ANSWER,
})  # fmt: skip
"""Why an answer that is whole and right was not kept; None: it was."""


class Step(Enum):
    """What a waiting request does next."""

    READ = "read"  # what the producer gives, as it comes
    WAIT = "wait"  # until the producer is done
    LOOK = "look"  # for the stored answer, which is in another form than this one wants
    AGAIN = "again"  # wait for another producer, or be it
    ALONE = "alone"  # ask the backend for itself


def at_head(  # noqa: PLR0913 - one answer, every fact about it
    status: int, unfit: Reason | None, failures: int, *, streamed: bool, wants_stream: bool, lacking: bool = False
) -> Step:
    """When the head of the answer has come. `unfit`: why it will not be kept, as far as the head tells; `failures`:
    producers that have failed before; `streamed`: the answer comes as a stream; `lacking`: without its usage, which is
    wanted."""
    if status in _FAILED:
        return Step.AGAIN if failures + 1 < MOST_FAILURES else Step.READ
    if status != 200 or unfit not in _COMPLETE:
        return Step.ALONE
    if not (streamed and wants_stream):
        return Step.WAIT
    return Step.ALONE if lacking else Step.READ


def at_end(reason: Reason | None, *, failed: bool, failures: int, same_form: bool) -> Step:
    """When the producer is done, for who has been given nothing yet. `reason`: why the answer was not kept, None if it
    was; `failed`: it broke off; `same_form`: it is as this request wants it."""
    if failed:
        return Step.AGAIN if failures + 1 < MOST_FAILURES else Step.READ
    if reason not in _COMPLETE:
        return Step.ALONE
    if same_form:
        return Step.READ
    return Step.LOOK if reason is None else Step.ALONE
