"""Which words before a clock or a date, on its line, call it the present. Pure.

Opening hours, deadlines, durations and conditions stand in prompts too and are no clock: words that make them so undo
a cue. Each word of a line is read once, whatever the number of clocks in it.
"""

import re

_WORD = re.compile(r"[^\W_]+|[.!?;](?=[ \t\r]|\Z)|[,:(]")
_CLAUSE = frozenset(".!?;,:(")
_SENTENCE = frozenset(".!?;")
_NOUNS_OF_TIME = frozenset({
    "time", "clock", "timestamp", "datetime", "currenttime", "localtime", "systemtime", "servertime", "uhrzeit", "zeit",
    "zeitstempel",
})  # fmt: skip
_NOUNS_OF_DAY = frozenset({"today", "date", "currentdate", "heute", "datum"})
_WEAK = frozenset({"now", "current", "currently", "jetzt", "aktuell"})
_STEMS = ("time", "clock", "zeit", "date", "today", "heute", "datum", "now", "current", "jetzt", "aktuell", "it")
"""One of them is part of every cue."""
_OTHERS = frozenset({
    "all", "any", "appointment", "arrival", "bed", "birth", "break", "breakfast", "business", "close", "closing",
    "cook", "cooking", "created", "creation", "cutoff", "deadline", "delivery", "departure", "dinner", "due", "each",
    "effective", "end", "ending", "event", "every", "expiration", "expiry", "first", "full", "half", "in", "issue",
    "knowledge", "last", "launch", "long", "lunch", "max", "maximum", "meeting", "min", "minimum", "next", "no", "off",
    "office", "open", "opening", "order", "out", "part", "pickup", "play", "prep", "processing", "publication",
    "purchase", "release", "response", "run", "runtime", "service", "some", "start", "starting", "training", "travel",
    "up", "update", "updated", "valid", "wait", "waiting", "working",
})  # fmt: skip
"""What may stand before ``time`` or ``date`` and makes it another one than the present."""
_CONDITIONS = frozenset({
    "assume", "falls", "if", "imagine", "once", "suppose", "unless", "until", "wenn", "when", "whenever",
})  # fmt: skip
_UNDOING = frozenset({
    "ab", "after", "before", "begin", "begins", "between", "bis", "born", "budget", "close", "closed", "closes",
    "closing", "cutoff", "daily", "deadline", "deadlines", "duration", "elapsed", "end", "ends", "established",
    "estimate", "every", "expire", "expires", "founded", "frame", "from", "hours", "launched", "left", "limit", "nach",
    "open", "opened", "opening", "opens", "out", "range", "released", "remaining", "schedule", "scheduled", "seit",
    "since", "slot", "slots", "spent", "start", "starts", "taken", "than", "till", "to", "until", "valid", "von", "vor",
    "window",
})  # fmt: skip
_TOUCHING = frozenset({"at", "by", "past", "um"})
_NEAR = frozenset({
    "about", "already", "and", "approximately", "around", "as", "currently", "es", "exactly", "friday", "gmt", "here",
    "in", "is", "ist", "it", "just", "local", "monday", "now", "of", "on", "s", "saturday", "sunday", "the", "thursday",
    "time", "today", "tuesday", "utc", "wednesday",
})  # fmt: skip


class Cues:
    """Reads the lines of a text from front to end; asked for growing places.

    What is asked to be skipped counts for nothing, and no word before it undoes by touching what comes after it.
    """

    __slots__ = ("_at", "_conditional", "_cue", "_last", "_last_end", "_near", "_nouns", "_seen", "_stem", "_text")

    def __init__(self, text: str, *, days: bool = False) -> None:
        self._text = text
        self._nouns = _NOUNS_OF_DAY if days else _NOUNS_OF_TIME
        self._at = self._seen = 0
        self._stem = False
        self._forget()

    def may_call(self, start: int) -> bool:
        """False if certainly no cue stands before `start` on its line; cheap."""
        line = self._text.rfind("\n", self._seen, start) + 1
        if line:
            self._seen, self._stem = line, False
        if not self._stem:
            piece = self._text[self._seen : start].lower()
            self._stem = any(stem in piece for stem in _STEMS)
        self._seen = start
        return self._stem

    def call_present(self, start: int, *, plain: bool) -> bool:
        """Whether the words before `start` say that what stands there is the present. `plain`: it needs a noun or
        a word nearby, because it does not look like a clock by itself."""
        self._read(start)
        if self._last in _TOUCHING:
            return False
        return self._cue == "noun" or (self._cue == "weak" and (self._near or not plain))

    def skip(self, start: int, end: int) -> None:
        """Reads up to `start` and goes on at `end`."""
        self._read(start)
        self._at = end
        self._last, self._last_end = "", -1
        self._conditional = False

    def _forget(self) -> None:
        self._cue = self._last = ""
        self._last_end = -1
        self._near = self._conditional = False

    def _read(self, end: int) -> None:
        line = self._text.rfind("\n", self._at, end) + 1
        if line:
            self._at = line
            self._forget()
        for token in _WORD.finditer(self._text, self._at, end):
            self._take(token.group().lower(), token.start(), token.end())
        self._at = max(self._at, end)

    def _take(self, word: str, start: int, end: int) -> None:
        if word in _CLAUSE:
            self._conditional = False
            if word in _SENTENCE:
                self._cue = ""
            return
        before = self._last if start - self._last_end == 1 else ""
        if word in self._nouns:
            self._say("noun" if before not in _OTHERS or not before else "")
        elif word in _WEAK or (word == "is" and before == "it") or (word == "s" and before == "it"):
            self._say("weak")
        elif word in _UNDOING:
            self._cue = ""
        else:
            self._near = self._near and word in _NEAR
            self._conditional = self._conditional or word in _CONDITIONS
        self._last, self._last_end = word, end

    def _say(self, cue: str) -> None:
        self._cue = "" if self._conditional else cue
        self._near = True
