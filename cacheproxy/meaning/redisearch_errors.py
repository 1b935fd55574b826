"""What goes wrong between us and a search server. Whatever it is, it leaves here as a `Trouble`, without a word of the
command in it; but that an index is missing is told apart, since it can be made."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from redisvl.exceptions import RedisSearchError

from cacheproxy.errors import Trouble

Mapper = Callable[[Exception], Trouble]

_MISSING = ("no such index", "unknown index name", "index not found", "search_index_not_found")
"""How servers of different age say it, in small letters. A query cannot say it: its words have no space between."""

_THERE = ("index already exists", "alias already exists")


class Missing(Trouble):
    """There is no such index, or no such alias."""


class There(Trouble):
    """There is one already."""


@contextmanager
def told(trouble: Mapper) -> Iterator[None]:
    """Whatever is raised within is raised as a `Trouble` made by `trouble`, or as one of the above."""
    try:
        yield
    except Trouble:
        raise
    except Exception as error:  # noqa: BLE001 - a garbled answer fails in many ways
        cause = error.__cause__ if isinstance(error, RedisSearchError) else error
        raise _kind(cause if isinstance(cause, Exception) else error, trouble) from None


def is_missing(error: Exception) -> bool:
    """Whether a server says so that there is no such index."""
    said = str(error).lower()
    return any(words in said for words in _MISSING)


def _kind(error: Exception, trouble: Mapper) -> Trouble:
    if is_missing(error):
        return Missing("there is no such index")
    said = str(error).lower()
    if any(words in said for words in _THERE):
        return There("there is such an index")
    return trouble(error)
