"""Parts of a JSON string exchanged in its bytes: what it says changes as in the text, all other bytes stay."""

import json
import re

import orjson
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.literal import edit_literal, edit_text, unix_literal, unix_text
from tests.core import shapes

LETTER = re.compile(rb"\\u[dD][89abAB]..\\u....|\\u....|\\.|[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]+", re.DOTALL)
"""How one character can stand in a literal."""
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@st.composite
def edited(draw):
    """A text and edits of it."""
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pairs = [(cuts[i], cuts[i + 1]) for i in range(0, len(cuts) - 1, 2)]
    return text, [(start, end, draw(texts)) for start, end in pairs]


@given(edited(), shapes.randoms)
def test_says_the_edited_text_and_keeps_other_bytes(case, rnd):
    """However the string is written: escapes of every kind, or none."""
    text, edits = case
    literal = shapes.write(text, rnd).strip()
    new = edit_literal(literal.decode(), edits).encode()
    assert json.loads(new) == edit_text(text, edits)
    letters = LETTER.findall(literal[1:-1])
    assert len(letters) == len(text)
    at, parts = 0, []
    for start, end, said in edits:
        parts += [*letters[at:start], orjson.dumps(said)[1:-1]]
        at = end
    assert new == b'"%b"' % b"".join([*parts, *letters[at:]])


def test_examples():
    """Plain, escaped, surrogate pairs, and at both ends."""
    assert edit_literal('"abc"', [(0, 1, "x"), (3, 3, "!")]) == '"xbc!"'
    assert edit_literal(r'"\u00e9\n\ud83d\ude00z"', [(2, 3, "-")]) == r'"\u00e9\n-z"'
    assert edit_literal('"é😀z"', [(1, 2, '"')]) == '"é\\"z"'
    assert edit_literal(r'"\\\"x"', [(1, 2, "")]) == r'"\\x"'
    assert edit_literal('""', [(0, 0, "a")]) == '"a"'


LINES = st.lists(
    st.sampled_from(["\r\n", "\r\r\n", "\r", "\n", "\\", "\\r", "\\r\\n", "a", "é", '"']), max_size=12
).map("".join)


@given(LINES, shapes.randoms, st.booleans())
def test_line_ends(text, rnd, plainly):
    """In the text and in its bytes alike, whichever escapes it is written with, backslashes before them or not."""
    literal = json.dumps(text).encode() if plainly else shapes.write(text, rnd).strip()
    wanted = re.sub("\r+\n", "\n", text)
    assert unix_text(text)[0] == wanted
    assert json.loads(unix_literal(literal.decode())) == wanted
    if wanted == text:
        assert unix_literal(literal.decode()).encode() == literal
