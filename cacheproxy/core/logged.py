"""Which lines of a text are those of a log: a stamp first, then what machines write. Pure.

A single line is one if a level, a logger or fields stand at its stamp; two successive lines with stamps always are.
Every pattern is bounded and anchored to where a line begins.
"""

import re
from collections.abc import Iterator

_REACH = 96
"""How far into its line a stamp's clock may stand, in characters."""
_CLOCK = re.compile(r":(?<=[0-9]:)[0-5][0-9]")
_TIME = r"[0-9]{1,2}:[0-5][0-9](?::[0-9]{2})?(?:[.,][0-9]{1,9})?"
_DATE = (
    r"(?:[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4}"
    r"|[0-9]{1,2}[-/ ][A-Z][a-z]{2}[-/ ][0-9]{2,4}|(?:[A-Z][a-z]{2},? )?[A-Z][a-z]{2} {1,2}[0-9]{1,2}(?: [0-9]{4})?)"
)
_LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERR|ERROR|CRIT|CRITICAL|FATAL|SEVERE|ALERT|EMERG"
_METHODS = "GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS"
_ZONE = (
    rf"(?: ?(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}}|(?!(?:{_LEVELS}|{_METHODS})\b)[A-Z]{{3,4}}(?![A-Za-z:=]))(?: [0-9]{{4}})?)?"
)
_STAMP = re.compile(
    r"[ \t]*+(?:(?:[-*+•]|[0-9]{1,3}[.)])[ \t]{1,8})?"
    rf"(?P<level>(?:\[(?i:{_LEVELS})\]|(?:{_LEVELS})\b)[ \t]{{0,4}}[:|-]?[ \t]{{0,4}})?"
    rf"(?:[IWEF][0-9]{{4}} {_TIME}(?P<glog>)"
    rf"|\S{{1,48}} \S{{1,16}} \S{{1,16}} \[[0-9]{{2}}/[A-Z][a-z]{{2}}/[0-9]{{4}}:{_TIME}(?P<access>)"
    rf"|[\[(<]?(?:{_DATE}(?:[T :_]|, ?| - ))?{_TIME}(?: [AP]M)?{_ZONE}[\])>]?)(?![0-9A-Za-z])"
)
_MACHINE = re.compile(
    rf"[ \t]*[-|:]{{0,2}}[ \t]*(?:(?:{_LEVELS})\b|\[(?!UTC|GMT|[A-Z]\w{{1,20}}/)[^\]\n]{{1,64}}\]|<[0-9]{{1,3}}>"
    rf"|(?i:{_LEVELS})[:\]|]|(?:[\w.-]{{1,64}}+ )?[\w.$/-]{{1,64}}+\[[0-9]{{1,10}}\]"
    rf"|\w{{1,64}}+(?:(?:\.|::)\w{{1,64}}+){{1,8}}+[ :]"
    rf"|(?:level|lvl|msg|ts|time|logger)=|[{{]\"|(?:{_METHODS}) [/h])"
)


def lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The log lines between `start` and `end`, which are bounds of lines; their neighbours are looked at too."""
    unread = start
    for clock in _CLOCK.finditer(text, start, end):
        at = clock.start()
        if at < unread:
            continue
        line = text.rfind("\n", max(start, at - _REACH), at) + 1
        if not line:
            if at - start > _REACH:
                continue
            line = start
        stamp = _STAMP.match(text, line)
        if stamp is None:
            continue
        newline = text.find("\n", at)
        unread = len(text) if newline < 0 else newline + 1
        if _told(text, stamp, unread):
            yield line, min(unread, end)


def _told(text: str, stamp: re.Match[str], following: int) -> bool:
    """Whether what stands around the stamp shows that its line is one of a log."""
    if stamp["level"] or stamp["glog"] is not None or stamp["access"] is not None:
        return True
    if _MACHINE.match(text, stamp.end()) or _STAMP.match(text, following):
        return True
    line = stamp.start()
    return line > 0 and _STAMP.match(text, text.rfind("\n", 0, line - 1) + 1) is not None
