"""What stands in a text word for word: code, quotes, URLs, e-mail addresses. Pure, linear."""

import re
from dataclasses import dataclass

_FENCED = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_ACCENT = re.compile("(?<=[A-Za-z])[`\u00b4](?=[A-Za-z]{1,2}(?![A-Za-z0-9_`]))")
_QUOTED = re.compile(
    r"\"([^\"\n]{1,400})\"|“([^”\n]{1,400})”|«([^»\n]{1,400})»|「([^」\n]{1,400})」|『([^』\n]{1,400})』|《([^》\n]{1,400})》"
)
_SINGLE = re.compile(r"(?<![\w'])'([^'\n]{1,200})'(?!\w)")
_URL = re.compile(r"(?:https?|ftp|wss?)://[^\s<>\"'`\uff0c。\uff09]+|\bwww\.[^\s<>\"'`\uff0c。\uff09]+", re.IGNORECASE)
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}")
_OPERATOR = re.compile(
    r"(?<=[\w)\]]) ?(===|!==|==|!=|<>|<=|>=|=>|->|<-|\+=|-=|\*=|/=|&&|\|\||\*\*|<<|>>|<|>|=|:=) ?(?=[\w(\[-])"
    r"|(?<=\d) ([+*\u00d7\u00f7/^\u2212-]) (?=\d)|(?<=\d)([+*\u00d7\u00f7^])(?=\d)"
)
_SIGNS = frozenset("<>=+*\u00d7\u00f7/^\u2212-&|")
_TRAILING = ".,;:!?)'"


@dataclass(frozen=True, slots=True)
class Spans:
    """The spans of a text, each kind as a sorted tuple, and the text with code, URLs and addresses taken out."""

    rest: str
    code: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    mails: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()

    def says(self, quote: str) -> bool:
        """Whether the text has what another one quotes, word for word."""
        return quote in self.quotes or _plain(quote) in _plain(self.rest)


def spans(text: str, tail: str = "") -> Spans:
    """Take `text` apart. What is quoted stays in the rest too. `tail`: what comes after it, taken for code."""
    code = [tail] if tail else []
    links: list[str] = []
    mails: list[str] = []
    if "`" in text or "\u00b4" in text:
        text = _ACCENT.sub("'", text)
        text = _FENCED.sub(lambda found: _kept(code, found.group(1)), text)
        text = _CODE.sub(lambda found: _kept(code, found.group(1)), text)
    if "://" in text or "www." in text:
        text = _URL.sub(lambda found: _kept(links, _link(found.group())), text)
    if "@" in text:
        text = _MAIL.sub(lambda found: _kept(mails, found.group().rstrip(".").lower()), text)
    text = " ".join(text.split())
    quotes = [_plain(next(filter(None, found))) for found in _QUOTED.findall(text)] if _has_quotes(text) else []
    if "'" in text:
        quotes += [_plain(found) for found in _SINGLE.findall(text)]
    found = [] if _SIGNS.isdisjoint(text) else _OPERATOR.findall(text)
    operators = tuple("".join(signs) for signs in found)
    return Spans(
        text, tuple(sorted(code)), tuple(sorted(quotes)), tuple(sorted(links)), tuple(sorted(mails)), operators
    )


def _kept(kept: list[str], form: str) -> str:
    """Nothing, after noting `form`."""
    kept.append(form.strip())
    return " "


def _has_quotes(text: str) -> bool:
    return any(sign in text for sign in '"“«「『《')


def _plain(quoted: str) -> str:
    """A quoted text in one case, with one space between words and no sign at its end."""
    return " ".join(quoted.casefold().split()).strip(" .,;:!?")


def _link(url: str) -> str:
    """A URL with its scheme and host in lower case and no trailing sign or slash."""
    url = url.rstrip(_TRAILING)
    _, mark, rest = url.partition("://")
    host, slash, path = (rest if mark else url).partition("/")
    host = host.lower().removeprefix("www.")
    return host + (slash + path).rstrip("/")
