"""Where two heads part, by a naive oracle, and what is said of it (B07, B08, B09)."""

from itertools import pairwise

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cacheproxy.core import stretches, toolset
from cacheproxy.core.blocks import Block
from cacheproxy.core.divergence import BYTES_PER_TOKEN, compare, tokens
from cacheproxy.core.volatile import Kind
from tests.core.heads import ODD, UUIDS, head, octets, prose, tool

PLACE = ("messages", 0, "content")
LETTERS = "ab \n\r.,é漢e\u0301😀\ud800\"'"
TEXTS = st.text(LETTERS, max_size=30)


# --- how much is shared ----------------------------------------------------------------------------------------------


def naive(before, after):
    """Bytes that are equal from the beginning, sign by sign and text by text."""
    shared = 0
    for one, other in zip(before, after, strict=False):
        for a, b in zip(one, other, strict=False):
            if a != b:
                return shared
            shared += octets(a)
        if len(one) != len(other):
            return shared
    return shared


@given(st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=4), st.integers(0, 4))
def test_what_is_shared_is_what_is_equal_sign_by_sign(one, other, kept):
    other = [*one[:kept], *other]
    found = compare(head(*one), head(*other))
    assert found.shared == naive(one, other)
    assert (found.divergence is None) == (one == other)


@given(TEXTS, TEXTS, TEXTS, st.integers(0, 9000))
def test_long_stretches_are_walked_exactly(start, one, other, length):
    """Across the steps in which texts are compared."""
    start = start + "x" * length
    a, b = start + one, start + other
    equal = next((n for n, (p, q) in enumerate(zip(a, b, strict=False)) if p != q), min(len(a), len(b)))
    assert stretches.common(a, 0, b, 0) == equal
    c, d = a[::-1], b[::-1]
    assert stretches.common_end(c, 0, d, 0) == equal
    assert stretches.equal_at_ends(a, b) <= min(len(a), len(b))


@given(TEXTS, TEXTS)
def test_the_ends_of_two_texts_do_not_overlap(one, other):
    gone = stretches.common(one, 0, other, 0)
    assert stretches.common_end(one, gone, other, gone) <= min(len(one), len(other)) - gone


@given(st.lists(TEXTS, min_size=1, max_size=3), st.lists(TEXTS, min_size=1, max_size=3))
def test_the_stretch_lies_where_the_heads_part_and_no_text_is_made_up(one, other):
    found = compare(head(*one), head(*other)).divergence
    if found is None:
        return
    number = int(found.pointer.split("/")[2])
    before, after = (texts[number] if number < len(texts) else "" for texts in (one, other))
    assert found.span[1] in after or found.kind in {Kind.NEWLINES, Kind.UNICODE}
    assert found.span[0] in before
    parted = next(
        (n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(map(len, (before, after)))
    )
    assert found.offset <= parted <= max(found.offset + len(found.span[1]), found.offset + len(found.span[0]), parted)
    assert found.saves >= 0


# --- what is said of it ----------------------------------------------------------------------------------------------

PLANTED = [
    ("clock", "2026-03-01 10:00:01 UTC", "2026-03-01 10:00:02 UTC"),
    ("clock", "2026-03-01T09:59:59Z", "2026-03-02T10:00:00Z"),
    ("ids", *UUIDS),
    ("ids", "1772359201", "1772359202"),
]
FRAMES = {"clock": "The current time is {}.", "ids": "Your session id: {}"}


@pytest.mark.parametrize(("rule", "one", "other"), PLANTED)
@pytest.mark.parametrize("place", [0, 1, 20, 40])
def test_a_planted_value_is_found_with_its_rule_and_what_it_would_save(rule, one, other, place):
    """B08: at the front, in the midst, at the end: the place, both values, and every byte behind them."""
    lines = prose(1).split("\n")
    texts = ["\n".join([*lines[:place], FRAMES[rule].format(value), *lines[place:]]) for value in (one, other)]
    found = compare(head(texts[0], "Be kind."), head(texts[1], "Be kind."))
    start = texts[1].index(other)
    parted = next(n for n, (p, q) in enumerate(zip(one, other, strict=False)) if p != q)
    assert found.shared == start + parted
    told = found.divergence
    assert (told.pointer, told.offset, told.kind, told.rule) == ("/messages/0/content", start, rule, rule)
    assert told.span == (one, other)
    assert told.saves == len(texts[1]) - start - len(other) + len("Be kind.")


def test_every_place_that_the_rule_would_mend_is_counted_and_no_other():
    """Two clocks and, last, an id: what `clock` saves ends at the id."""
    parts = [prose(seed, 10) for seed in range(4)]

    def text(second, number):
        time = f"\nThe current time is 2026-03-01 10:00:{second:02}.\n"
        return parts[0] + time + parts[1] + time + parts[2] + f"\nSession id: {UUIDS[number]}\n" + parts[3]

    told = compare(head(text(1, 0)), head(text(2, 1))).divergence
    assert told.rule == "clock"
    between = parts[1] + parts[2]
    said = ".\n" + "\nThe current time is 2026-03-01 10:00:0" + ".\n" + "\nSession id: "
    assert told.saves == len(between) + len(said)


@pytest.mark.parametrize(
    "around", ["```\n{}\n```", "> {}", "<log>\n{}\n</log>", 'The user said "{}" once.'],
)  # fmt: skip
def test_what_is_only_shown_has_no_rule(around):
    """No rule touches a code block, so none is named."""
    texts = [f"{prose(2)}\n{around.format(f'The current time is 2026-03-01 10:00:0{n}')}\n{prose(3)}" for n in (1, 2)]
    told = compare(head(texts[0]), head(texts[1])).divergence
    assert (told.kind, told.rule) == ("text", None)


def test_a_document_with_code_around_far_lines_is_known_for_code():
    lines = prose(4, 60)
    texts = [f"Hi.\n```\n{lines}\nThe current time is 2026-03-01 10:00:0{n}\n{lines}\n```\nBye." for n in (1, 2)]
    assert compare(head(texts[0]), head(texts[1])).divergence.rule is None


def test_nonce_lines():
    """B07."""
    texts = [f"x-anthropic-billing-header: cc_version=1.0; cch={n};\n{prose(5)}" for n in ("aaaaa", "bbbbb")]
    told = compare(head(texts[0]), head(texts[1])).divergence
    assert (told.offset, told.kind, told.rule, told.saves) == (0, "nonces", "nonces", octets(prose(5)))
    mine = [f"x-mine: {n}\n{prose(5)}" for n in ("aaaaa", "bbbbb")]
    assert compare(head(mine[0]), head(mine[1])).divergence.rule is None
    assert compare(head(mine[0]), head(mine[1]), ("x-mine",)).divergence.rule == "nonces"
    assert compare(head(prose(5)), head(texts[1])).divergence.rule == "nonces"
    others = [f"x-request-id: 1\nYou help.\n{text}" for text in (prose(1), prose(2))]
    assert compare(head(others[0]), head(others[1])).divergence.rule is None
    at_once = [f"x-request-id: 1\n{name}" for name in ("Anna", "Bob")]
    assert compare(head(at_once[0]), head(at_once[1])).divergence.rule is None
    behind = [f"Hi\n{text}" for text in texts]
    assert compare(head(behind[0]), head(behind[1])).divergence.rule is None


def test_line_ends():
    text = prose(6)
    for one, other in ((text, text.replace("\n", "\r\n")), (text.replace("\n", "\r\r\n"), text.replace("\n", "\r\n"))):
        found = compare(head(one, "end"), head(other, "end"))
        told = found.divergence
        assert (told.kind, told.rule) == ("newlines", "newlines")
        assert found.shared == naive([one], [other])
        assert found.shared - other[: found.shared].count("\r") + told.saves in {len(text) + 3, len(text) + 4}
    assert compare(head("a\rb"), head("a\nb")).divergence.rule is None
    both = compare(head(text, text, "end"), head(*[text.replace("\n", "\r\n")] * 2, "end"))
    assert both.divergence.saves > 2 * len(text) - len(text.split("\n")[0])


@pytest.mark.parametrize("start", ["", "Sch", "Schön. "])
def test_composed_and_decomposed_signs(start):
    """The saving is every byte from the sign on: all of it would be equal."""
    one, other = f"{start}öä and more. Über alles", f"{start}o\u0308a\u0308 and more. U\u0308ber alles"
    for a, b in ((one, other), (other, one)):
        found = compare(head(a), head(b))
        assert (found.divergence.kind, found.divergence.rule) == ("unicode", "unicode")
        assert found.shared + found.divergence.saves == octets(one)
    assert compare(head("caf\u00e9 one"), head("caf\u00e8 one")).divergence.rule is None
    both = compare(head(one, one, "end"), head(other, other, "end"))
    assert both.shared + both.divergence.saves == 2 * octets(one) + 3
    assert compare(head("Anna, cafe\u0301"), head("Bob, cafe\u0301")).divergence.rule is None


def test_tools_in_another_order():
    """B09."""
    tools = [tool("zeta", a="string", b="number"), tool("alpha", c="string"), tool("mu")]
    for other in (tools[::-1], [tool("zeta", b="number", a="string"), *tools[1:]]):
        told = compare(head("You help.", tools=tools), head("You help.", tools=other)).divergence
        assert (told.pointer, told.kind, told.rule) == ("/tools", "tools", "tools")
        texts = [orjson.dumps(listed).decode() for listed in (tools, other)]
        assert told.saves == len("You help.") + len(texts[1]) - stretches.common(texts[0], 0, texts[1], 0)
    changed = [tools[0], tool("alpha", c="string"), tool("nu")]
    assert compare(head("x", tools=tools), head("x", tools=changed)).divergence.rule is None
    swapped = [tool("zeta", a="number", b="string"), *tools[1:]]
    assert toolset.written(swapped) != toolset.written(tools)
    assert compare(head("x", tools=tools), head("x", tools=swapped)).divergence.rule is None


def test_times_and_comments_in_descriptions_of_tools():
    pairs = [[tool("now", f'Says "now".\nThe current time is 2026-03-01 10:00:0{n}. Ok?')] for n in (1, 2)]
    found = compare(head("You help.", tools=pairs[0]), head("You help.", tools=pairs[1]))
    told = found.divergence
    assert (told.kind, told.rule) == ("clock", "tool_noise")
    assert told.span == ("2026-03-01 10:00:01", "2026-03-01 10:00:02")
    text = orjson.dumps(pairs[1]).decode()
    assert text[told.offset :].startswith("2026-03-01 10:00:02. Ok?")
    assert told.saves == len(text) - told.offset - len("2026-03-01 10:00:02") + len("You help.")
    noted = [[{**tool("now"), "$comment": f"build {n}"}] for n in ("one", "two")]
    told = compare(head(tools=noted[0]), head(tools=noted[1])).divergence
    assert (told.kind, told.rule) == ("text", "tool_noise")


def test_every_time_in_a_description_is_counted_once():
    """Two in one description, of different lengths, and one in the next."""
    texts = []
    for time in ("9:05:01", "10:05:01"):
        said = f'Says "now".\nIt is {time} now. Ok? It is {time} now.'
        texts.append([tool("a", said), tool("b", said), tool("c")])
    told = compare(head("You help.", tools=texts[0]), head("You help.", tools=texts[1])).divergence
    raw = orjson.dumps(texts[1]).decode()
    assert (told.rule, told.span) == ("tool_noise", ("9:05:01", "10:05:01"))
    assert told.offset == raw.index("10:05:01")
    assert told.saves == len(raw) - told.offset - 4 * len("10:05:01") + len("You help.")


def test_code_in_a_description_is_only_shown():
    said = f"Hi.\n```\n{prose(1)}\nIt is 2026-03-01 10:00:0{{}}.\n{prose(2)}\n```"
    pair = [[tool("a", said.format(n))] for n in (1, 2)]
    assert compare(head(tools=pair[0]), head(tools=pair[1])).divergence.rule is None


def test_a_time_here_and_an_id_there_have_no_rule():
    texts = [f"The current time is {value}.\n{prose(1)}" for value in ("2026-03-01 10:00:01", UUIDS[0])]
    assert compare(head(texts[0]), head(texts[1])).divergence.rule is None


def test_what_was_moved_to_the_end_is_no_divergence():
    """The rule `move` has done its work: nothing could be saved."""
    texts = [f"{prose(7)}\n\n[moved here from above]\n[time 1]: 10:00:0{n}" for n in (1, 2)]
    found = compare(head(texts[0]), head(texts[1]))
    assert (found.shared, found.divergence) == (octets(prose(7)), None)
    assert compare(head(texts[0], "x"), head(texts[1], "x")).divergence is not None


def test_a_name_has_no_rule_and_the_place_where_both_go_on():
    texts = [f"You help {name} with mail.\n{prose(8)}" for name in ("Anna Smith", "Bob")]
    told = compare(head(texts[0]), head(texts[1])).divergence
    assert (told.offset, told.kind, told.rule) == (len("You help "), "text", None)
    assert told.span == ("Anna Smith", "Bob")
    assert told.saves == len(f" with mail.\n{prose(8)}")
    told = compare(head("You help Anna, ok? Yes or no."), head("You help Anton, ok? Yes or no.")).divergence
    assert (told.offset, told.span) == (len("You help "), ("Anna", "Anton"))


def test_a_text_inserted_left_out_or_exchanged_is_bridged():
    parts = [prose(seed, 8) for seed in range(4)]
    plain, more = "\n".join(parts[:2]), "\n".join([parts[0], parts[2], parts[1]])
    behind = octets(parts[1])
    for one, other in ((plain, more), (more, plain)):
        assert compare(head(one), head(other)).divergence.saves >= behind
    other = "\n".join([parts[0], prose(9, 30), parts[1]])
    assert compare(head(more), head(other)).divergence.saves >= behind


def test_a_long_text_exchanged_is_bridged_from_the_end():
    start, end = prose(1, 8), prose(2, 8)
    texts = ["\n".join([start, prose(n, 40), end]) for n in (3, 4)]
    found = compare(head(texts[0]), head(texts[1]))
    assert octets(end) <= found.divergence.saves <= octets(end) + 3


def test_after_some_lines_both_go_on_alike():
    """Where the ends differ again: what is equal between is bridged to by its first line."""
    start, lines, between = prose(1, 8), [prose(n, 3) for n in (2, 3)], prose(4, 8)
    texts = ["\n".join([start, some, between, prose(n)]) for n, some in enumerate(lines)]
    found = compare(head(texts[0]), head(texts[1]))
    assert octets(between) <= found.divergence.saves <= octets(between) + 5


def test_one_head_is_longer():
    told = compare(head("a"), head("a", "b")).divergence
    assert (told.pointer, told.offset, told.kind, told.span, told.saves) == (
        "/messages/1/content",
        0,
        "text",
        ("", "b"),
        0,
    )
    told = compare(head("a", "b"), head("a")).divergence
    assert (told.pointer, told.span) == ("/messages/1/content", ("b", ""))
    assert compare([], []).divergence is None


def test_tokens_are_an_estimate_of_four_bytes_each():
    assert (BYTES_PER_TOKEN, tokens(0), tokens(4001)) == (4, 0, 1000)


# --- odd input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [PLACE, ("tools",)])
def test_odd_texts_are_compared_too(path):
    for one, other in pairwise([*ODD, *ODD[::-1], *ODD[::2], *ODD[1::2]]):
        found = compare([Block(path, one)], [Block(path, other)])
        assert found.shared == naive([one[:200]], [other[:200]]) or found.shared >= 200


@settings(max_examples=300)
@given(st.data())
def test_nothing_breaks_on_edits_of_odd_texts(data):
    text = data.draw(st.sampled_from(ODD[:-1]))[:3000]
    at = data.draw(st.integers(0, len(text)))
    new = data.draw(st.sampled_from(["", "é", "e\u0301", "\r", "10:00:01", *UUIDS, '"', "\\", "x-request-id: 4\n"]))
    other = text[:at] + new + text[at + data.draw(st.integers(0, 40)) :]
    for path in (PLACE, ("tools",)):
        found = compare([Block(path, text)], [Block(path, other)])
        assert found.shared == naive([text], [other])
        assert (found.divergence is None) == (text == other)
