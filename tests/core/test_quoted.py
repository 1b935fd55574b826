"""What a text shows instead of saying it: code, logs, quotations, examples, documents."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cacheproxy.core import idents as core_idents
from cacheproxy.core import moments as core_moments
from cacheproxy.core import quoted
from cacheproxy.core.idents import idents
from cacheproxy.core.moments import moments
from tests.bench.finders import HOSTILE

PIECES = (
    "word", " ", "\n", "\n\n", "    ", "\t", "`", "``", "```", "~~~", '"', "\u201c", "\u201d", "\u201e", "«", "»", "> ", "<log>",
    "</log>", "<code>", "</CODE>", "<pre a='1'>", "</pre>", "- ", "1. ", "# Example", "## Next", "2026-03-01 10:00:01", " INFO ",
    "[main]", "10:00:01", "é", "漢", "\ud800", "\0", "\r\n",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=30).map("".join)


def shown(text: str) -> list[str]:
    return [text[start:end] for start, end in quoted.regions(text)]


@pytest.mark.parametrize(
    ("text", "regions"),
    [
        ("a\n```py\ncode\n```\nb", ["```py\ncode\n```"]),
        ("a\n~~~\ncode\n~~~~\nb", ["~~~\ncode\n~~~~"]),
        ("a\n````\n```\n````\nb", ["````\n```\n````"]),
        ("a\n```\n~~~\n``` x\n```\nb", ["```\n~~~\n``` x\n```"]),
        ("a\r\n```\r\ncode\r\n```\r\nb", ["```\r\ncode\r\n```\r"]),
        ("- a\n  ```\n  code\n  ```\nb", ["```\n  code\n  ```"]),
        ("- ```\n  code\n  ```\nb", ["```\n  code\n  ```"]),
        ("```\nopen", ["```\nopen"]),
        ("say ```\nnot a fence", []),
        ("```a``` b", ["```a```"]),
    ],
)
def test_fenced_code(text, regions):
    """B08: a fence that nothing closes reaches to the end."""
    assert shown(text) == regions


@pytest.mark.parametrize(
    ("text", "regions"),
    [
        ("a `b` c", ["`b`"]),
        ("a ``b ` c`` d", ["``b ` c``"]),
        ("a `b\nc` d", []),
        ("a ` b `` c ` d", ["` b `` c `"]),
        ("a ``` b `` c ` d", []),
        ("a `b` and `c`", ["`b`", "`c`"]),
    ],
)
def test_inline_code_closes_on_its_line(text, regions):
    assert shown(text) == regions


@pytest.mark.parametrize(
    ("text", "regions"),
    [
        ('a "b c" d', ['"b c"']),
        ('a "b\nc" d', []),
        ('a "b" c "d" e"', ['"b"', '"d"']),
        ('`"` a "b" c', ['`"`', '"b"']),
        ("\u201ca\u201d b \u201cc\u201d", ["\u201ca\u201d", "\u201cc\u201d"]),
        ("\u201ea\u201c b \u201ac\u2018", ["\u201ea\u201c", "\u201ac\u2018"]),
        ("\u201da\u201d b", ["\u201da\u201d"]),
        ("«a» b »c« d \u2039e\u203a f", ["«a»", "»c«", "\u2039e\u203a"]),
        ("「a」b『c』", ["「a」", "『c』"]),
        ("\u2018a\u2019 it\u2019s b", ["\u2018a\u2019"]),
        ("it\u2019s a dog\u2019s", []),
        ("\u201ca\nb\u201d", []),
        ("it's a dog's", []),
    ],
)
def test_quotations_close_on_their_line(text, regions):
    assert shown(text) == regions


@pytest.mark.parametrize(
    ("text", "regions"),
    [
        ("> a\nb", ["> a"]),
        ("a\n> b\n  >c\nd", ["> b", "  >c"]),
        ("a > b\n-> c", []),
    ],
)
def test_quoted_lines(text, regions):
    assert shown(text) == regions


@pytest.mark.parametrize(
    ("text", "regions"),
    [
        ("a\n\n    code\n\n    more\nb", ["    code\n\n    more\n"]),
        ("a\n\n\tcode", ["\tcode"]),
        ("a\n \t\n    code", ["    code"]),
        ("a\n    wrapped", []),
        ("- a\n\n    paragraph", []),
        ("- a\n\n      code\n\n    paragraph", ["      code\n\n"]),
        ("12. a\n\n    paragraph\n\n    another", []),
        ("- a\n\n    paragraph\n\n        code\nb", ["        code\n"]),
        ("\n    all of it\n\n    is indented\n", []),
        ("\n\n    all of it", []),
        ("    all of it\n\n        code\n", ["        code\n"]),
        ("a\n\n    \n\nb", []),
    ],
)
def test_indented_code(text, regions):
    """Paragraphs of list items are indented too, and so are whole prompts."""
    assert shown(text) == regions


@pytest.mark.parametrize("name", [
    "log", "logs", "code", "pre", "example", "examples", "document", "documents", "quote", "transcript", "LOG", "Example",
])  # fmt: skip
def test_elements(name):
    element = f"<{name}>\na\n</{name.lower()}>"
    assert shown(f"x {element} y") == [element]
    assert shown(f'x <{name} id=1\n b="2">c</{name}> y') == [f'<{name} id=1\n b="2">c</{name}>']


@pytest.mark.parametrize(
    ("text", "regions"),
    [
        ("use the <code> tag and say <code>a</code> b", ["<code>a</code>"]),
        ("<log>a<log>b</log>c</log>d", ["<log>a<log>b</log>c</log>"]),
        ("</log> a <log>", []),
        ("<login>a</login> <context>now</context> <codex>b</codex>", []),
        ("<log>a</pre>", []),
    ],
)
def test_tags_that_nothing_closes_are_only_spoken_of(text, regions):
    assert shown(text) == regions


@pytest.mark.parametrize("line", [
    "2026-03-01 10:00:01 INFO started",
    "2026-03-01T10:00:01.123Z error: no such file",
    "[2026-03-01 10:00:01] ERROR no such file",
    "2026-03-01 10:00:01,123 - app.server - started",
    "2026-03-01 10:00:01 UTC [main] started",
    "2026/03/01 10:00:01 [error] 12#0: refused",
    "[INFO] 2026-03-01 10:00:01 started",
    "[info] 10:00:01 started",
    "WARN 2026-03-01 10:00:01 disk full",
    "10:00:01 DEBUG started",
    "10:00:01.123 [worker-1] started",
    "Mar  1 10:00:01 host sshd[411]: accepted",
    "I0301 10:00:01.123456   12 server.go:31] started",
    '127.0.0.1 - - [01/Mar/2026:10:00:01 +0000] "GET / HTTP/1.1" 200',
    "2026-03-01T10:00:01Z level=info msg=started",
    '2026-03-01 10:00:01 {"event": 1}',
    "- 2026-03-01 10:00:01 INFO started",
    "2026-03-01 10:00:01 GET /v1/models 200",
])  # fmt: skip
def test_log_lines(line):
    """B08: the log in a prompt is not the prompt's clock."""
    assert quoted.regions(f"before\n{line}\nafter") == [(7, 7 + len(line) + 1)]
    assert quoted.regions(line) == [(0, len(line))]
    assert moments(f"before\n{line}") == []


@pytest.mark.parametrize("lines", [
    "2026-03-01 10:00:01 user came\n2026-03-01 10:00:02 user went",
    "[10:00] ann: hello\n[10:01] bob: hello",
    "- 10:00:01 came\n- 10:00:02 went\n- 10:00:03 came",
])  # fmt: skip
def test_successive_lines_with_stamps(lines):
    assert quoted.regions(f"a\n{lines}\nb") == [(2, 2 + len(lines) + 1)]


@pytest.mark.parametrize("text", [
    "2026-03-01 10:00:01 UTC is the current time.",
    "[2026-03-01 10:00:01 UTC] You are a helpful assistant.",
    "10:00:01 is now",
    "2026-03-01T10:00:01+01:00[Europe/Berlin] is now",
    "2026-03-01 10:00:01 was then\n\n2026-03-01 10:00:02 is now",
    "Today is 2026-03-01 10:00:01 INFO",
    "word " * 30 + "10:00:01 INFO",
])  # fmt: skip
def test_a_sentence_with_a_stamp_is_no_log(text):
    assert quoted.regions(text) == []


def test_a_clock_far_in_its_line_begins_none():
    text = "10:00:01 INFO a\n" + "word " * 30 + "10:00:02 INFO b"
    assert quoted.regions(text) == [(0, 16)]


@pytest.mark.parametrize(
    ("text", "regions"),
    [
        ("# A\na\n## Examples\nb\n### c\nd\n## E\ne", ["## Examples\nb\n### c\nd"]),
        ("## Few-shot examples\nb", ["## Few-shot examples\nb"]),
        ("# **Example** 1\nb\n# Next\nc", ["# **Example** 1\nb"]),
        ("# Example\n```\n# comment\n```\nb\n# Next\nc", ["# Example\n```\n# comment\n```\nb"]),
        ("an example\nb\n# Next", []),
        ("# Counterexamples\nb", []),
    ],
)
def test_sections_of_examples(text, regions):
    assert shown(text) == regions


@pytest.mark.parametrize("before", [
    "use e.g. ", "for example ", "For instance, ", "dates such as ", "in the format ", "formatted as ", "like ", "(e.g. ",
    "Example: ", "Example 2: ", "Examples (", "examples are ", "Example:\n", "Examples:\n- ", "in the form of ", "z. B. ",
])  # fmt: skip
def test_examples_are_announced(before):
    assert quoted.announced(before + "2026", len(before))


@pytest.mark.parametrize("before", [
    "", "now ", "I would like you to know: ", "(e.g. formally) now ", "As in all examples. Now ", "Example:\nask\n", "perform ",
    "See https://example.org/a and ", "Example Corp, ",
    "Answer in JSON format. ", "The format and the date are ",
])  # fmt: skip
def test_what_is_no_announcement(before):
    assert not quoted.announced(before + "2026", len(before))


@given(texts)
def test_regions_are_sorted_apart_and_within_the_text(text):
    found = quoted.regions(text)
    assert all(0 <= start < end <= len(text) for start, end in found)
    assert all(one[1] < other[0] for one, other in pairwise(found))


@settings(max_examples=400)
@given(texts, st.lists(st.tuples(st.integers(0, 80), st.integers(1, 9)), max_size=8))
def test_asking_for_places_is_asking_for_regions(text, places):
    """The quick way reads only the lines of the places; the answer is that of all regions."""
    spans = sorted((start, start + length) for start, length in places if start + length <= len(text))
    spans = [span for span in spans if "\n" not in text[slice(*span)]]
    regions = quoted.regions(text)
    expected = [span for span in spans if not any(s < span[1] and span[0] < e for s, e in regions)]
    assert quoted.outside(text, spans, lambda span: span) == expected


@pytest.mark.parametrize("seed", HOSTILE, ids=repr)
def test_eight_times_the_text_costs_no_square(seed):
    """Linear is 8 times, quadratic 64 times; the best of three, and only where there is enough to measure."""

    def seconds(size: int) -> float:
        text = seed * (size // len(seed))
        best = 1e9
        for _ in range(3):
            for remembered in (quoted._large, core_moments._remembered, core_idents._remembered):
                remembered.cache_clear()
            began = time.process_time()
            for work in (quoted.regions, idents, moments):
                work(text)
            moments(text, dates=True)
            best = min(best, time.process_time() - began)
        return best

    assert seconds(2**17) < 28 * seconds(2**14) + 0.05
