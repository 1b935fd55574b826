"""Layer 1: only what a rule names changes, applied twice is applied once, and the model is told the same."""

import json
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core import noise, texts
from cacheproxy.core.expressions import compiled
from cacheproxy.core.model import Endpoint
from cacheproxy.core.prefix import NONE, Change, Clock, Ids, Rules, Unit, stabilise
from cacheproxy.core.texts import MOVED, Action, Pattern
from tests.core import shapes

DEFAULT = Rules()
DAY = Rules(clock=Clock.COARSEN)
HOUR = Rules(clock=Clock.COARSEN, unit=Unit.HOUR)
MOVE = Rules(clock=Clock.MOVE)
DROP = Rules(ids=Ids.DROP)
EVERYTHING = Rules(
    tool_noise=True, clock=Clock.MOVE, ids=Ids.MOVE,
    patterns=(Pattern(compiled(r"uptime: \d+ s"), Action.MOVE), Pattern(compiled(r"v\d+\.\d+"), Action.REPLACE, "vX"),
              Pattern(compiled(r"\d+ users"), Action.COARSEN), Pattern(compiled(r"nonce=\w+"), Action.DROP)),
)  # fmt: skip
ALL = [DEFAULT, DAY, HOUR, MOVE, DROP, Rules(ids=Ids.MOVE, clock=Clock.COARSEN), EVERYTHING]
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
STABLE = "You are a careful clerk. Answer in short sentences.\n" * 50


def chat(*messages, **more):
    return {"model": "m", "messages": [{"role": role, "content": content} for role, content in messages], **more}


def applied(body, rules, endpoint=Endpoint.CHAT):
    """The body as it is forwarded, parsed."""
    raw = json.dumps(body).encode()
    stable = stabilise(endpoint, raw, json.loads(raw), rules)
    assert json.loads(stable.plain) == stable.fields
    again = stabilise(endpoint, stable.plain, json.loads(stable.plain), rules)
    assert again.plain == stable.plain
    assert not again.changes
    return stable.fields


def system(text, rules, **more):
    """A system text as it is forwarded."""
    return applied(chat(("system", text), ("user", "u"), **more), rules)["messages"][0]["content"]


# --- what is never touched ------------------------------------------------------------------------------------------

TRAPS = f"2026-03-01 10:00:01 UTC {UUID}\r\nx-anthropic-billing-header: cch=a;\r\ne\u0301 session_id=abc123def"


@pytest.mark.parametrize("rules", ALL)
def test_other_texts_are_never_touched(rules):
    """B07, B08: history, user, assistant and tool texts, arguments of tool calls, byte for byte."""
    call = {"id": TRAPS, "type": "function", "function": {"name": "f", "arguments": TRAPS}}
    body = chat(
        ("user", TRAPS), ("assistant", TRAPS), ("tool", TRAPS), ("function", TRAPS), ("user", [{"type": "text", "text": TRAPS}]),
        metadata={"system": TRAPS}, prediction={"type": "content", "content": TRAPS}, stop=[TRAPS],
    )  # fmt: skip
    body["messages"][1]["tool_calls"] = [call]
    raw = json.dumps(body, indent=1).encode()
    assert stabilise(Endpoint.CHAT, raw, body, rules).plain is raw


@pytest.mark.parametrize("endpoint", [e for e in Endpoint if e not in (Endpoint.CHAT, Endpoint.RESPONSES)])
def test_other_operations_are_never_touched(endpoint):
    raw = json.dumps(body := {**chat(("system", TRAPS)), "prompt": TRAPS, "input": TRAPS}).encode()
    assert stabilise(endpoint, raw, body, EVERYTHING).plain is raw


def test_no_rules_no_change():
    """Every rule off: the very bytes that came."""
    raw = json.dumps(body := chat(("system", TRAPS), tools=[{"name": "b"}, {"name": "a"}])).encode()
    stable = stabilise(Endpoint.CHAT, raw, body, NONE)
    assert stable.plain is raw
    assert stable.fields is body
    assert stable.changes == ()


@pytest.mark.parametrize("rules", [DAY, HOUR, MOVE, DROP, EVERYTHING])
@pytest.mark.parametrize(
    "shown",
    [
        f"```\n2026-03-01 10:00:01 boot {UUID}\n```",
        f"~~~log\n2026-03-01 10:00:01 boot {UUID}\n~~~",
        f"Run `date -d 2026-03-01T10:00:01Z {UUID}` to see it.",
        f"> 2026-03-01 10:00:01 {UUID} he wrote",
        f"<log>\n2026-03-01 10:00:01 {UUID}\n</log>",
        "2026-03-01 10:00:01 ERROR disk full\n2026-03-01 10:00:02 INFO retried",
        f'A line looks like this: "2026-03-01 10:00:01 {UUID} started".',
    ],
)
def test_what_is_shown_is_not_touched(rules, shown):
    """A code block, a quoted log, an example."""
    text = f"You explain logs.\n\n{shown}\n\nBe brief."
    assert system(text, rules) == text


# --- B07: lines of one request at the head ---------------------------------------------------------------------------

BILLING = "x-anthropic-billing-header: cc_version=1.0; cch=%s;\n"


@pytest.mark.parametrize("form", [lambda t: t, lambda t: [{"type": "text", "text": t}]])
def test_nonce_lines_at_the_head_go(form):
    """B07: string and list content; equal bytes up to the first user message; the user's quotation stays."""
    bodies = [
        chat(("system", form(BILLING % nonce + STABLE)), ("user", BILLING % "ccccc")) for nonce in ("aaaaa", "bbbbb")
    ]
    raws = [stabilise(Endpoint.CHAT, (raw := json.dumps(body).encode()), json.loads(raw), DEFAULT) for body in bodies]
    assert raws[0].plain == raws[1].plain
    assert raws[0].fields["messages"] == chat(("system", form(STABLE)), ("user", BILLING % "ccccc"))["messages"]
    assert raws[0].changes[0].rule == "nonces"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (BILLING % 1 + BILLING % 2 + "rest", "rest"),
        ("X-Anthropic-Billing-Header: a\r\nrest", "rest"),
        ("X-Request-ID : 17\nrest", "rest"),
        ("x-anthropic-billing-header: a", "x-anthropic-billing-header:"),
        (BILLING % 1 + "x-request-id: 17\n", "x-request-id:"),
        ("x-acme-7-turn: 9\nrest", "rest"),
        ("rest\n" + BILLING % 1, "rest\n" + BILLING % 1),
        (" " + BILLING % 1, " " + BILLING % 1),
        ("x-anthropic-billing-header\nrest", "x-anthropic-billing-header\nrest"),
        ("x-other: 1\nrest", "x-other: 1\nrest"),
    ],
)
def test_nonce_lines(text, left):
    """Anchored to the start; any number of them; a text of nothing else keeps a name; more names by the operator."""
    assert system(text, Rules(nonce_names=(*DEFAULT.nonce_names, "x-acme-*-turn"))) == left


def test_nonce_lines_in_every_block_that_is_the_systems():
    body = chat(
        ("system", [{"type": "text", "text": BILLING % 1}, {"type": "text", "text": "a"}]),
        ("developer", BILLING % 2 + "b"),
    )
    told = applied(body, DEFAULT)["messages"]
    assert [p["text"] for p in told[0]["content"]] == ["x-anthropic-billing-header:", "a"]
    assert told[1]["content"] == "b"


# --- B08: clocks -----------------------------------------------------------------------------------------------------


def test_clock_is_off_by_default():
    """B08: the bytes stay."""
    raw = json.dumps(body := chat(("system", "Today is 2026-03-01 10:00:01 UTC. " + STABLE))).encode()
    assert stabilise(Endpoint.CHAT, raw, body, DEFAULT).plain is raw


def test_clock_coarsened():
    """B08: to the day, or the hour; another day is another text."""
    text = "Today is 2026-03-%02d %02d:00:%02d UTC. " + STABLE
    assert system(text % (1, 10, 1), DAY) == "Today is 2026-03-01. " + STABLE == system(text % (1, 11, 2), DAY)
    assert system(text % (2, 10, 1), DAY) == "Today is 2026-03-02. " + STABLE
    assert system(text % (1, 10, 1), HOUR) == system(text % (1, 10, 59), HOUR) != system(text % (1, 11, 1), HOUR)
    assert "10:00:00 UTC" in system(text % (1, 10, 1), HOUR)


def test_clock_moved():
    """B08: the prefix stays the same, the model still gets the precise time, at the end of the last system text."""
    first, second = (
        applied(chat(("system", f"Today is {at}. " + STABLE), ("user", "q"), ("assistant", "a"), ("developer", "Be kind."),
                     ("user", "what does 10:00:01 mean in this log?")), MOVE)["messages"]
        for at in ("2026-03-01 10:00:01 UTC", "2026-03-01 10:00:02 UTC")
    )  # fmt: skip
    assert first[0] == second[0] == {"role": "system", "content": "Today is [time 1]. " + STABLE}
    assert first[3]["content"] == f"Be kind.\n\n{MOVED}\n[time 1]: 2026-03-01 10:00:01 UTC"
    assert second[3]["content"].endswith("[time 1]: 2026-03-01 10:00:02 UTC")
    assert [m["content"] for m in first[1:3] + first[4:]] == ["q", "a", "what does 10:00:01 mean in this log?"]


def test_moved_values_are_numbered_by_place():
    """Equal values in one call may differ in the next: each has a mark of its own; kinds are counted apart."""
    text = f"Now: 2026-03-01 10:00:01. Session id: {UUID}. Started: 2026-03-01 10:00:01. Trace id: {UUID}. End."
    told = system(text, Rules(clock=Clock.MOVE, ids=Ids.MOVE))
    head, _, notes = told.partition(f"\n\n{MOVED}\n")
    assert head == "Now: [time 1]. Session id: [id 1]. Started: [time 2]. Trace id: [id 2]. End."
    assert notes.split("\n") == [
        "[time 1]: 2026-03-01 10:00:01", f"[id 1]: {UUID}", "[time 2]: 2026-03-01 10:00:01", f"[id 2]: {UUID}",
    ]  # fmt: skip


def test_moved_beside_what_was_moved_before():
    """A text that has such values at its end (from another proxy before this one): they stay, numbers go on."""
    text = f"Now 2026-03-01 10:00:01. Go.\n\n{MOVED}\n[time 2]: 2026-01-01 00:00:00\n[id 7]: x"
    wanted = f"Now [time 3]. Go.\n\n{MOVED}\n[time 2]: 2026-01-01 00:00:00\n[id 7]: x\n[time 3]: 2026-03-01 10:00:01"
    assert system(text, MOVE) == wanted
    assert system(text, DAY).startswith("Now 2026-03-01. Go.")
    assert system(text, DAY).endswith("[time 2]: 2026-01-01 00:00:00\n[id 7]: x")


def test_moved_into_an_empty_last_text():
    told = applied(chat(("system", "At 2026-03-01 10:00:01."), ("system", "")), MOVE)["messages"]
    assert told[1]["content"] == f"{MOVED}\n[time 1]: 2026-03-01 10:00:01"


def test_moved_in_responses():
    """Instructions come first; without a system turn in the input they are the last system text."""
    told = applied(
        {"model": "m", "instructions": "Now 2026-03-01 10:00:01. Be kind.", "input": TRAPS}, MOVE, Endpoint.RESPONSES
    )
    assert told["instructions"] == f"Now [time 1]. Be kind.\n\n{MOVED}\n[time 1]: 2026-03-01 10:00:01"
    assert told["input"] == TRAPS
    turns = [
        {"role": "developer", "content": [{"type": "input_text", "text": "x"}]},
        {"role": "user", "content": TRAPS},
    ]
    told = applied({"instructions": "Now 2026-03-01 10:00:01.", "input": turns}, MOVE, Endpoint.RESPONSES)
    assert told["instructions"] == "Now [time 1]."
    assert told["input"][0]["content"][0]["text"].endswith("[time 1]: 2026-03-01 10:00:01")
    assert told["input"][1]["content"] == TRAPS


# --- ids, patterns, tools, text --------------------------------------------------------------------------------------


def test_ids_dropped():
    assert system(f"Request ID: {UUID}\nGo.", DROP) == "Request ID: \nGo."


def test_patterns():
    """Move (over lines too), coarsen, drop, replace; in code blocks too, since they are the operator's own."""

    def rule(pattern, action, text=""):
        return Rules(patterns=(Pattern(compiled(pattern), Action(action), text),))

    assert system("a uptime: 17 s b", rule(r"uptime: \d+ s", "drop")) == "a  b"
    assert system("a\n```\nuptime: 17 s\n```", rule(r"\d+ s", "replace", "N s")) == "a\n```\nuptime: N s\n```"
    assert system("There are 1,734 users.", rule(r"[\d,]+ users", "coarsen")) == "There are 1,000 users."
    assert system("At 2026-03-01 10:00:01 it was", rule(r"At [\d :-]+\d", "coarsen")) == "At 2026-03-01 it was"
    assert system("no marks here", rule(r"\b", "move")) == "no marks here"
    told = system("<env>\nbranch: x\n</env>\nGo.", rule(r"(?s)<env>.*?</env>", "move"))
    assert told == f"[value 1]\nGo.\n\n{MOVED}\n[value 1]: <env>\nbranch: x\n</env>"


def test_rules_that_want_the_same_place():
    """A line that goes is not searched; where two finds overlap the clock comes first, and nothing is garbled."""
    assert system(f"x-request-id: {UUID} 2026-03-01 10:00:01\nBe kind.", EVERYTHING) == "Be kind."
    overlapping = Pattern(compiled(r"at \d{4}"), Action.DROP)
    told = system("It came at 2026-03-01 10:00:01, they say.", Rules(clock=Clock.MOVE, patterns=(overlapping,)))
    assert told == f"It came at [time 1], they say.\n\n{MOVED}\n[time 1]: 2026-03-01 10:00:01"
    twice = (Pattern(compiled("abc"), Action.REPLACE, "x"), Pattern(compiled("bcd"), Action.REPLACE, "y"))
    assert system("abcd bcd", Rules(patterns=twice)) == "xd y"


def test_what_is_remembered_of_a_text_is_of_these_rules_and_this_text():
    """A text that needed no change: other rules, a tail that does, or values moved into it change it all the same."""
    text = "Now 2026-03-01 10:00:01. Be kind."
    for _ in range(2):
        assert system(text, DEFAULT) == text
    assert system(text, DAY) == "Now 2026-03-01. Be kind."
    moved = f"Be calm.\n\n{MOVED}\n[time 1]: x"
    assert system(moved, MOVE) == moved
    assert system(moved + "\r\ny", MOVE) == moved + "\ny"
    assert system(moved + "e\u0301", MOVE) == moved + "é"
    told = applied(chat(("system", text), ("system", "Be calm.")), MOVE)["messages"]
    assert told[1]["content"] == f"Be calm.\n\n{MOVED}\n[time 1]: 2026-03-01 10:00:01"


def test_what_is_too_long_is_not_searched():
    """Searching is done while others wait: long texts pass as they came, but for what takes no search."""
    text = "Now 2026-03-01 10:00:01.\r\n" + "x" * texts.LONGEST
    assert system(text, EVERYTHING) == text.replace("\r\n", "\n")
    long = [{"name": "f", "description": "At 2026-03-01 10:00:01. " + "x" * noise.LONGEST}]
    assert applied(chat(("user", "u"), functions=long), Rules(tool_noise=True))["functions"] == long


def test_a_pattern_that_never_ends_is_not_applied():
    """Its own result matches again: it is left out, the other rules are not."""
    grows = Pattern(compiled("a"), Action.REPLACE, "aa")
    assert system("abc\r\n", Rules(patterns=(grows,))) == "abc\n"
    swaps = Pattern(compiled("[ab]"), Action.REPLACE, "ab")
    assert system("a", Rules(patterns=(grows, swaps))) == "a"


def test_line_ends_and_unicode():
    """In system texts only; several CR before a LF are one line end; a lone CR stays."""
    assert system("a\r\nb\r\r\nc\rd\n", DEFAULT) == "a\nb\nc\rd\n"
    assert system("e\u0301 ﬁ \u1100\u1161", DEFAULT) == "é ﬁ 가"
    assert system("a\r\ne\u0301", Rules(newlines=False)) == "a\r\né"
    assert system("a\r\ne\u0301", Rules(unicode=False)) == "a\ne\u0301"


def test_tools():
    """B09: in one order, and nothing else of the body moves; a tool choice still names its tool."""
    tools = [
        {"type": "function", "function": {"name": n, "parameters": {"type": "object"}}} for n in ("zeta", "alpha", "mu")
    ]
    choice = {"type": "function", "function": {"name": "zeta"}}
    raws = []
    for order in (tools, tools[::-1]):
        raw = json.dumps(chat(("user", "u"), tools=order, tool_choice=choice)).encode()
        stable = stabilise(Endpoint.CHAT, raw, json.loads(raw), DEFAULT)
        assert stable.fields["tool_choice"] == choice
        assert json.loads(stable.plain) == stable.fields
        raws.append(stable.plain)
    assert raws[0] == raws[1]
    for spaces in ((", ", ": "), (",", ":"), (" ,\n", " :\t")):
        raw = json.dumps(chat(("user", "u"), tools=tools), separators=spaces).encode()
        assert (
            raws[0].partition(b'"tools": ')[2].partition(b', "tool_choice"')[0]
            in stabilise(Endpoint.CHAT, raw, json.loads(raw), DEFAULT).plain
        )
    raw = json.dumps(body := chat(("user", "u"), tools=tools[::-1])).encode()
    assert stabilise(Endpoint.CHAT, raw, body, Rules(tools=False)).plain is raw


def test_tool_noise():
    """Comments of schemas, times and ids in descriptions; properties that are called so stay; data stays."""
    tool = {
        "name": "f", "description": f"Index of 2026-03-01 10:00:01, {UUID}.",
        "parameters": {"$comment": "x", "properties": {"$comment": {"type": "string"}, "description": {"description": "d"}},
                       "default": {"$comment": TRAPS}},
    }  # fmt: skip
    told = applied(chat(("user", "u"), functions=[tool]), Rules(tool_noise=True))["functions"][0]
    assert told["description"] == "Index of , ."
    assert told["parameters"] == {
        "properties": {"$comment": {"type": "string"}, "description": {"description": "d"}},
        "default": {"$comment": TRAPS},
    }


def test_changes_tell_what_was_changed():
    """The rule, the place, what stood there and what stands there now, how often."""
    raw = json.dumps(body := chat(("user", "u"), ("system", "a\r\nb\r\nNow: 2026-03-01 10:00:01"))).encode()
    assert stabilise(Endpoint.CHAT, raw, body, MOVE).changes == (
        Change("newlines", "/messages/1/content", "\r\n", "\n", 2),
        Change("clock", "/messages/1/content", "2026-03-01 10:00:01", "[time 1]"),
        Change("clock", "/messages/1/content", "", "[time 1]: 2026-03-01 10:00:01"),
    )


# --- for anything ----------------------------------------------------------------------------------------------------

letters = st.characters(exclude_categories=["Cs"])
SPANS = ["2026-03-01 10:00:01 UTC", UUID, "\r\n", "e\u0301", BILLING % 1, "uptime: 12 s", "v1.2", "17 users", "`", '"', "```\n",
         "[time 1]", MOVED, "\n\n" + MOVED + "\n", "\n[id 3]: x", "nonce=1", " ", "Sun, 01 Mar 2026 10:00:01 GMT", "\n"]  # fmt: skip
prompts = st.lists(st.sampled_from(SPANS) | st.text(letters, max_size=12), max_size=8).map("".join)
contents = prompts | st.lists(st.builds(lambda t: {"type": "text", "text": t}, prompts), max_size=3)
bodies = st.builds(
    chat_of := lambda messages, more: {"model": "m", "messages": messages, **more},
    st.lists(st.fixed_dictionaries({"role": st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
                                    "content": contents | st.none() | shapes.values}), max_size=5),
    st.dictionaries(st.sampled_from(["tools", "x", "metadata"]), shapes.values, max_size=2),
)  # fmt: skip


@given(bodies, st.sampled_from([*ALL, NONE]), shapes.randoms)
def test_twice_is_once_and_only_system_texts_and_tools_change(body, rules, rnd):
    """Whatever the body, however it is written: a fixed point; members that no rule names keep every byte."""
    raw = shapes.write(body, rnd)
    stable = stabilise(Endpoint.CHAT, raw, body, rules)
    assert shapes.plain(json.loads(stable.plain)) == shapes.plain(stable.fields)
    again = stabilise(Endpoint.CHAT, stable.plain, stable.fields, rules)
    assert again.plain == stable.plain
    assert again.changes == ()
    if not stable.changes:
        assert stable.plain is raw
    for name, value in body.items():
        if name not in ("messages", "tools"):
            assert shapes.plain(stable.fields[name]) == shapes.plain(value)
    for old, new in zip(body["messages"], stable.fields["messages"], strict=True):
        if old["role"] not in ("system", "developer"):
            assert shapes.plain(old) == shapes.plain(new)


@given(prompts, shapes.randoms)
def test_default_rules_do_what_they_say_and_no_more(text, rnd):
    """Line ends, composition and leading nonce lines: checked against what they mean, done by hand."""
    raw = shapes.write(body := chat(("system", text), ("user", text)), rnd)
    stable = stabilise(Endpoint.CHAT, raw, body, replace(DEFAULT, nonces=False))
    plainly = text
    while "\r\n" in plainly:
        plainly = plainly.replace("\r\n", "\n")
    assert stable.fields["messages"][0]["content"] == unicodedata.normalize("NFC", plainly)
    assert stable.fields["messages"][1]["content"] == text


WORDS = st.lists(
    st.sampled_from(["Rules", "apply", "to", "each", "case", "and", "item", "nine", "."]), max_size=12
).map(" ".join)


@given(WORDS, WORDS, WORDS, shapes.randoms)
def test_only_the_planted_span_differs(before, between, after, rnd):
    """A planted time and id in prose: exactly these go, each by its rule, and every other byte of the body stays."""
    at, token = "2026-03-01 10:00:01 UTC", UUID
    text = f"{before} {at} {between} {token} {after}"
    raw = shapes.write(chat(("system", text), ("user", text)), rnd)
    said = json.loads(raw)
    day = stabilise(Endpoint.CHAT, raw, said, DAY)
    assert day.fields["messages"][0]["content"] == f"{before} 2026-03-01 {between} {token} {after}"
    gone = stabilise(Endpoint.CHAT, raw, said, DROP)
    assert gone.fields["messages"][0]["content"] == f"{before} {at} {between}  {after}"
    moved = stabilise(Endpoint.CHAT, raw, said, MOVE)
    assert (
        moved.fields["messages"][0]["content"]
        == f"{before} [time 1] {between} {token} {after}\n\n{MOVED}\n[time 1]: {at}"
    )
    for stable in (day, gone, moved):
        start = next(i for i, (a, b) in enumerate(zip(raw, stable.plain, strict=False)) if a != b)
        assert raw[:start] == stable.plain[:start]
        assert stable.fields["messages"][1] == said["messages"][1]
        tail = raw[raw.rindex(b'"user"') :] if b'"user"' in raw else b""
        assert stable.plain.endswith(tail)


def test_an_empty_match_of_a_pattern_is_no_place_for_a_mark():
    """`\\b` matches between letters: nothing is there that could be moved."""
    rules = Rules(patterns=(Pattern(compiled(r"sid=\d+|\b"), Action.MOVE),))
    text = "Greet the caller. sid=42 end"
    moved = system(text, rules)
    assert moved.count("[value ") == 2, "the mark, and the line that says what it stands for"
    assert moved.startswith("Greet the caller. [value 1] end")


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def test_tools_that_differ_in_white_space_alone_arrive_as_the_same_bytes():
    """The backend's template writes them itself, but its tokens are those of what it got where it does not."""
    close = json.dumps(chat(("user", "u"), tools=[TOOL]), separators=(",", ":")).encode()
    wide = json.dumps(chat(("user", "u"), tools=[TOOL])).encode()
    found = [stabilise(Endpoint.CHAT, raw, json.loads(raw), DEFAULT).plain for raw in (close, wide)]
    tools = [plain[plain.index(b'"tools"') :].split(b":", 1)[1].strip(b" }") for plain in found]
    assert tools[0] == tools[1]
