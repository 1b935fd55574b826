"""``cacheproxy lint-prompt``: what in a prompt keeps it from being reused, where, what to write against it, and what that
is worth (B07, B08, B09)."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import settings as search
from hypothesis import strategies as st

from cacheproxy.errors import ConfigurationError
from cacheproxy.lint import WIDTH, lint, report
from cacheproxy.settings import resolve
from tests.commands import Commands
from tests.core.heads import ODD, UUIDS, prose, tool
from tests.rig import ROOT

TIME = "2026-03-01 10:00:01 UTC"
LONG = prose(1)


def settings(**values):
    named = {name.replace("__", "."): value for name, value in values.items()}
    return resolve({"upstreams": ["http://backend"], **named}, None, {}).settings


def told(given, **values):
    data = given if isinstance(given, bytes) else (given if isinstance(given, str) else json.dumps(given)).encode()
    return lint(settings(**values), data)


def requests(*bodies):
    return "\n".join(map(json.dumps, bodies))


def chat(*systems, **fields):
    turns = [{"role": "system", "content": text} for text in systems]
    return {"model": "m", "messages": [*turns, {"role": "user", "content": f"It is {TIME}."}], **fields}


def places(told):
    return [(row["pointer"], row["line"], row["column"], row["kind"], row["rule"]) for row in told["findings"]]


# --- one prompt ------------------------------------------------------------------------------------------------------


def test_a_text_with_a_clock_and_an_id():
    """B08: where, what to write, what it costs."""
    found = told(f"You help.\nIt is {TIME}. Hello.\nSession id: {UUIDS[0]}\n{LONG}")
    assert not found["ok"]
    assert places(found) == [("", 2, 7, "clock", "clock"), ("", 3, 13, "ids", "ids")]
    clock, ident = found["findings"]
    assert (clock["setting"], ident["setting"]) == ("prefix.rules.clock: move", "prefix.rules.ids: move")
    assert (clock["text"], clock["mended"], ident["text"]) == (TIME, False, UUIDS[0])
    assert ident["behind"] == {"bytes": len(LONG) + 1, "tokens": (len(LONG) + 1) // 4}
    assert clock["behind"]["bytes"] == len(f". Hello.\nSession id: {UUIDS[0]}\n{LONG}")
    assert clock["excerpt"] == [f"It is {TIME}. Hello.", " " * 6 + "^" * len(TIME)]


@pytest.mark.parametrize(
    ("values", "ok", "setting"),
    [
        ({}, False, "prefix.rules.clock: move"), ({"prefix__rules__clock": "move"}, True, None),
        ({"prefix__rules__clock": "coarsen"}, True, None),
        ({"prefix__rules__clock": "move", "prefix__mode": "off"}, False, "prefix.mode: on"),
        ({"prefix__mode": "off"}, False, "prefix.mode: on, prefix.rules.clock: move"),
        ({"prefix__rules__patterns": [{"pattern": r"\d\d:\d\d:\d\d UTC", "action": "drop"}]}, True, None),
        ({"prefix__rules__patterns": [{"pattern": r"elsewhere", "action": "drop"}]}, False, "prefix.rules.clock: move"),
    ],
)  # fmt: skip
def test_what_the_rules_in_force_mend_is_well(values, ok, setting):
    found = told(f"It is {TIME}.", **values)
    assert (found["ok"], found["findings"][0]["mended"]) == (ok, ok)
    if setting is not None:
        assert found["findings"][0]["setting"] == setting
        named = dict(part.split(": ") for part in setting.split(", "))
        with_it = {name.replace(".", "__"): value for name, value in named.items()}
        assert told(f"It is {TIME}.", **{**values, **with_it})["ok"]


def test_a_bare_date_is_not_coarsened():
    text = "Today is 2026-03-01."
    assert [row["kind"] for row in told(text)["findings"]] == ["clock"]
    assert not told(text, prefix__rules__clock="coarsen")["ok"]
    assert told(text, prefix__rules__clock="move")["ok"]


def test_what_default_rules_mend_is_found_and_well():
    """B07, B09: and no longer well where a rule is off."""
    text = "x-anthropic-billing-header: cch=aaaaa;\r\nHello\r\ncafe\u0301 and cafe\u0301"
    found = told(text)
    assert found["ok"]
    assert places(found) == [
        ("", 1, 1, "nonces", "nonces"), ("", 1, 39, "newlines", "newlines"), ("", 3, 4, "unicode", "unicode"),
    ]  # fmt: skip
    assert [row["count"] for row in found["findings"]] == [1, 2, 2]
    for rule in ("nonces", "newlines", "unicode"):
        assert not told(text, **{f"prefix__rules__{rule}": "off"})["ok"]
    unsorted = chat("You help.", tools=[tool("zeta"), tool("alpha")])
    assert places(told(unsorted)) == [("/tools", 1, 1, "tools", "tools")]
    assert told(unsorted)["ok"]
    assert not told(unsorted, prefix__rules__tools="off")["ok"]
    assert told(chat("You help.", tools=[tool("alpha"), tool("zeta")]))["findings"] == []


def test_places_come_in_order():
    assert [row["kind"] for row in told(f"It is {TIME}.\r\nIt is {TIME}.")["findings"]] == [
        "clock",
        "newlines",
        "clock",
    ]


def test_names_of_nonce_lines_come_from_the_configuration():
    assert told("x-mine: 1\nHello")["findings"] == []
    assert places(told("x-mine: 1\nHello", prefix__nonce_lines=["x-mine"])) == [("", 1, 1, "nonces", "nonces")]


@pytest.mark.parametrize("text", [LONG, f"```\n{TIME}\n```", f"> {TIME}", "漢字", " hi ", "[1, 2"])
def test_nothing_found(text):
    assert told(text) == {"ok": True, "requests": 1, "findings": [], "divergences": [], "notes": []}


# --- requests --------------------------------------------------------------------------------------------------------


def test_all_instructions_of_a_request_are_looked_at_and_nothing_else():
    """Wherever they stand; the user's own time is nobody's business. What stands behind a late one is its own rest."""
    body = chat(f"It is {TIME}. {LONG}", "Be", " kind.")
    body["messages"] += [{"role": "developer", "content": [{"type": "text", "text": f"Now:\nit is {TIME}, ok?"}]}]
    found = told(body)
    assert places(found) == [
        ("/messages/0/content", 1, 7, "clock", "clock"), ("/messages/4/content/0/text", 2, 7, "clock", "clock"),
    ]  # fmt: skip
    assert [row["behind"]["bytes"] for row in found["findings"]] == [len(f". {LONG}") + len("Be kind."), len(", ok?")]
    responses = {"model": "m", "instructions": f"It is {TIME}.", "input": f"It is {TIME}."}
    assert places(told(responses)) == [("/instructions", 1, 7, "clock", "clock")]


def test_descriptions_of_tools():
    """What stands behind them: the tools after it, and the texts."""
    tools = [tool("alpha", f'Says "now".\nThe current time is {TIME}.'), tool("zeta")]
    tools[1]["function"]["parameters"]["properties"]["a"] = {"description": f"Session id: {UUIDS[0]}"}
    tools[1]["function"]["parameters"]["default"] = {"description": f"Session id: {UUIDS[0]}"}
    found = told(chat("You help.", tools=tools))
    assert [row for row in places(found) if row[3] != "tools"] == [
        ("/tools/0/function/description", 2, 21, "clock", "tool_noise"),
        ("/tools/1/function/parameters/properties/a/description", 1, 13, "ids", "tool_noise"),
    ]  # fmt: skip
    rows = [row for row in found["findings"] if row["kind"] != "tools"]
    assert [row["setting"] for row in rows] == ["prefix.rules.tool_noise: on"] * 2
    assert [row["behind"]["bytes"] for row in rows] == [9 + len(json.dumps(tools[1], separators=(",", ":"))) + 1, 9]
    assert told(chat("You help.", tools=tools), prefix__rules__tool_noise="on")["ok"]


def test_where_requests_part_as_they_are_forwarded():
    bodies = [chat(f"It is 2026-03-01 10:00:0{n} UTC.\n{LONG}") for n in (1, 2, 3)]
    found = told(requests(*bodies))
    (row,) = found["divergences"]
    assert (row["pointer"], row["line"], row["column"], row["kind"]) == ("/messages/0/content", 1, 7, "clock")
    assert (row["requests"], row["seen"]) == ([2, 3], 2)
    assert (row["shared"]["bytes"], row["saves"]["bytes"]) == (len("It is 2026-03-01 10:00:0"), len(f".\n{LONG}"))
    assert row["setting"] == "prefix.rules.clock: move"
    assert row["span"] == ["2026-03-01 10:00:02 UTC", "2026-03-01 10:00:03 UTC"]
    (place,) = found["findings"]
    assert (place["request"], place["requests"], place["varies"]) == (1, 3, True)
    mended = told(requests(*bodies), prefix__rules__clock="move")
    assert (mended["ok"], mended["divergences"]) == (True, [])
    crlf = [chat(text) for text in (LONG, LONG.replace("\n", "\r\n"))]
    assert told(requests(*crlf))["divergences"] == []
    assert [row["rule"] for row in told(requests(*crlf), prefix__mode="off")["divergences"]] == ["newlines"]


def test_a_name_is_told_to_the_developer_and_has_a_pattern():
    found = told(requests(*[chat(f"You help {name}.\n{LONG}") for name in ("Anna", "Bob")]))
    (row,) = found["divergences"]
    assert (row["kind"], row["rule"], row["setting"]) == ("text", None, "prefix.rules.patterns")
    assert row["excerpt"][0] == "You help Bob."
    assert not found["ok"]


def test_other_prompts_and_models_do_not_part():
    bodies = [chat(LONG), chat(prose(2)), chat(LONG), {**chat(f"Hi.\n{LONG}"), "model": "n"}, chat(prose(2))]
    assert told(requests(*bodies))["divergences"] == []


def test_what_is_the_same_in_all_requests_is_said():
    found = told(requests(*[chat(f"Session id: {UUIDS[0]}\n{LONG}")] * 3))
    assert found["findings"][0]["varies"] is False
    assert "the same in all 3 requests" in next(report(found, "f"))
    assert told(chat(f"Session id: {UUIDS[0]}"))["findings"][0]["varies"] is None


def test_lines_of_a_batch_file():
    lines = [{"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": chat(f"It is {TIME}.")}] * 2
    assert places(told(requests(*lines))) == [("/messages/0/content", 1, 7, "clock", "clock")]


def test_no_rule_applies_to_a_request_that_can_be_read_in_two_ways():
    body = json.dumps(chat("a\r\nb")).replace('"model"', '"model": "n", "model"')
    found = told(body)
    assert (found["ok"], found["findings"][0]["mended"]) == (False, False)
    assert len(found["notes"]) == 1
    found = told(f"{json.dumps(chat('a' + chr(13) + chr(10) + 'b'))}\n{body}")
    assert (found["findings"][0]["requests"], found["findings"][0]["mended"]) == (2, False)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"), (b" \n\t", "empty"), (b"\xef\xbb\xbf", "empty"), (b"ab\xff", "UTF-8 (byte 3)"),
        (b"\xff\xfeH\0i\0", "UTF-8"), (b'{"messages": [', "not valid JSON (line 1"), (b'\n {"a":\n 1,}', "line 3, column"),
        (b"{{ template }}", "not valid JSON"), (b'{"messages":[]}\n{"mess', "line 2"), (b'{"model":"m"}', "no request"),
        (b'{"messages":[]}\n\n[]', "line 3"), (b'{"messages":[]}\n{"prompt":"x"}', "line 2"),
        (b'{"messages":[],"tools":' + b"[" * 300 + b"]" * 300 + b"}", "too deep"),
        (b'{"messages":[],"tools":' + b"[" * 90_000 + b"]" * 90_000 + b"}", "not valid JSON"),
        (b'{"messages":"\\ud800"}', "not valid JSON"),
    ],
)  # fmt: skip
def test_bad_input_is_told_in_one_line(data, words):
    with pytest.raises(ConfigurationError) as caught:
        lint(settings(), data)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


TEXTS = st.one_of(
    st.text(max_size=40), st.sampled_from([*(text[:500] for text in ODD), f"It is {TIME}", "x-request-id: 1\n"])
)
PARTS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "description", "function", "name", "default"]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)
TURNS = st.lists(
    st.one_of(
        PARTS, st.fixed_dictionaries({"role": st.sampled_from(["system", "developer", "user"]), "content": PARTS})
    ),
    max_size=3,
)


@search(max_examples=100, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"messages": TURNS}, optional={"tools": PARTS, "functions": PARTS, "model": PARTS, "body": PARTS}
        ),
        min_size=1,
        max_size=4,
    )
)
@example([{"messages": [{"role": "system", "content": "\x1b[31m" + TIME + "\x07"}]}])
def test_any_requests_can_be_looked_at(bodies):
    data = "\n".join(map(json.dumps, bodies)).encode()
    try:
        found = lint(settings(), data)
    except ConfigurationError as error:
        assert "\\ud8" in data.decode() or "{" not in data.decode(), error
        return
    json.dumps(found).encode()
    lines = list(report(found, "f"))
    assert lines
    assert all(line.isprintable() for line in lines)


@search(max_examples=100, deadline=None)
@given(TEXTS)
def test_any_text_can_be_looked_at(text):
    try:
        found = lint(settings(), text.encode("utf-8", "surrogatepass"))
    except ConfigurationError:
        return
    assert all(line.isprintable() for line in report(found, "f"))


def test_a_long_line_is_cut_around_the_place():
    text = "漢" * 500 + f" it is {TIME} " + "\x1b" * 500
    (row,) = told(text)["findings"]
    line, marks = row["excerpt"]
    assert len(line) <= WIDTH
    assert line.index(TIME) == 40
    assert marks == " " * (7 + 33 * 2) + "^" * len(TIME)
    assert "\x1b" not in line


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def commands(tmp_path_factory) -> Iterator[Commands]:
    started = Commands(tmp_path_factory.mktemp("commands"))
    yield started
    started.close()


@pytest.fixture
def run(commands, tmp_path):
    """Looks at a file: ``done = await run("text", "--json")``."""

    async def looked(content, *options):
        file = tmp_path / "prompt.txt"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return await commands.run("lint-prompt", str(file), *options)

    return looked


async def test_exit_codes_and_lines(run):
    done = await run(f"You help.\nIt is {TIME}. Bye.")
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines() == [
        "prompt.txt:2:7: clock: write prefix.rules.clock: move; 6 bytes (about 1 tokens) behind it cannot be reused",
        f"    It is {TIME}. Bye.",
        "    " + " " * 6 + "^" * len(TIME),
        "1 found, 0 of them mended by rules that are on",
    ]
    done = await run("a\r\nb")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "prompt.txt:1:2: newlines: mended by prefix.rules.newlines, which is on"
    assert ((await run(LONG)).code, (await run(LONG)).out) == (0, "nothing found\n")


async def test_requests_in_lines(run):
    done = await run(requests(*[chat(f"You help {name}.\n{LONG}") for name in ("Anna", "Bob")]))
    assert done.code == 1
    assert done.out.splitlines()[0] == (
        "prompt.txt requests 1 and 2 part at /messages/0/content:1:10 after 9 bytes (about 2 tokens): "
        f"text; prefix.rules.patterns could save {len(LONG) + 1:,} bytes (about {(len(LONG) + 1) // 4} tokens)"
    )


async def test_json_and_the_configuration(run, tmp_path):
    done = await run(f"It is {TIME}. \N{SNOWMAN}", "--json")
    assert (done.code, json.loads(done.out)) == (1, told(f"It is {TIME}. \N{SNOWMAN}"))
    config = tmp_path / "cacheproxy.yaml"
    config.write_text("prefix: {rules: {clock: move}}")
    assert (await run(f"It is {TIME}.", "--config", str(config))).code == 0


@pytest.mark.parametrize("data", [b"", b"\xff", b"{", b'{"model":"m"}'])
async def test_bad_input(run, data):
    done = await run(data)
    assert (done.code, done.out) == (2, "")
    assert done.sentence


async def test_files_that_cannot_be_read(commands, tmp_path):
    for place in (tmp_path / "none", tmp_path):
        done = await commands.run("lint-prompt", str(place))
        assert (done.code, done.out) == (2, "")
        assert "cannot read" in done.sentence
    assert (await commands.run("lint-prompt")).code == 2
    assert "empty" in (await commands.run("lint-prompt", "-")).sentence


def test_a_terminal_that_cannot_show_it(tmp_path):
    """In a process of its own: what its output can be written in is settled at its start."""
    file = tmp_path / "p"
    file.write_text(f"\N{SNOWMAN} it is {TIME}", "utf-8")
    command = [sys.executable, "-m", "cacheproxy", "lint-prompt", str(file)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert (done.returncode, done.stderr) == (1, "")
    assert f"? it is {TIME}" in done.stdout
