"""Layer 1 seen from both sides: what reaches the backend is stable, what callers get is theirs, keys follow what is
forwarded."""

import gzip
import json
import random

import pytest

from tests import rig
from tests.fakes.backend import completion, gives

STABLE = "Answer as the clerk of a small shop would, in short sentences.\n" * 100
BILLING = "x-anthropic-billing-header: cc_version=1.0; cch=%s;\n"
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
CLOCKED = "Today is 2026-03-%02d 10:00:%02d UTC. " + STABLE


def chat(system, user="Say hello.", **more):
    return {
        "model": "m",
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        **more,
    }


def written(body):
    """As the API's own clients write it."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def up_to_the_user(raw):
    return raw[: raw.index(b'"user"')]


@pytest.mark.parametrize("parts", [False, True])
async def test_a_coding_agents_nonce_is_no_news(client, backend, parts):
    """B07: the backend reads the same up to the first user message, the second is a HIT, a user's own text is kept."""

    def system(nonce):
        text = BILLING % nonce + STABLE
        return [{"type": "text", "text": text}, {"type": "text", "text": "Be kind."}] if parts else text

    first = await client.send(written(chat(system("aaaaa"))))
    second = await client.send(written(chat(system("bbbbb"))))
    assert (first.cache, second.cache) == ("MISS", "HIT")
    await client.send(written(chat(system("ccccc"), BILLING % "ddddd" + "what is this?")))
    seen = [s.body for s in backend.seen]
    assert len(seen) == 2
    assert up_to_the_user(seen[0]) == up_to_the_user(seen[1])
    assert b"cch" not in seen[0]
    assert json.loads(seen[1])["messages"][1]["content"] == BILLING % "ddddd" + "what is this?"


async def test_a_clock_passes_untouched_by_default(client, backend):
    """B08: the rule is off; the bytes are the caller's; another second is another question."""
    bodies = [written(chat(CLOCKED % (1, second))) for second in (1, 2)]
    answers = [await client.send(body) for body in bodies]
    assert [a.cache for a in answers] == ["MISS", "MISS"]
    assert [s.body for s in backend.seen] == bodies


async def test_a_clock_coarsened_is_a_hit_within_its_day_only(start, session, backend):
    """B08: the same prefix all day; yesterday's answer is not served across a change of the date."""
    proxy = await start(prefix__rules__clock="coarsen")
    client = rig.Client(proxy.base, session)
    asked = "what does 10:00:01 mean in this log?"
    answers = [await client.send(written(chat(CLOCKED % when, asked))) for when in ((1, 1), (1, 59), (2, 1))]
    assert [a.cache for a in answers] == ["MISS", "HIT", "MISS"]
    sent = [json.loads(s.body)["messages"] for s in backend.seen]
    assert sent[0][0]["content"] == "Today is 2026-03-01. " + STABLE
    assert sent[1][0]["content"] == "Today is 2026-03-02. " + STABLE
    assert sent[0][1]["content"] == asked


async def test_a_clock_moved_stays_in_the_key(start, session, backend):
    """B08: the prefix is stable, the model still gets the precise time, and another second is another question."""
    proxy = await start(prefix__rules__clock="move")
    client = rig.Client(proxy.base, session)
    answers = [await client.send(written(chat(CLOCKED % when))) for when in ((1, 1), (1, 2), (1, 1))]
    assert [a.cache for a in answers] == ["MISS", "MISS", "HIT"]
    texts = [json.loads(s.body)["messages"][0]["content"] for s in backend.seen]
    stable = "Today is [time 1]. " + STABLE
    assert [t[: len(stable)] for t in texts] == [stable, stable]
    assert [t.rpartition("\n")[2] for t in texts] == [f"[time 1]: 2026-03-01 10:00:0{n} UTC" for n in (1, 2)]


def tool(name, properties):
    parameters = {"type": "object", "properties": properties, "required": ["zone", "at"]}
    return {"type": "function", "function": {"name": name, "description": f"Calls {name}.", "parameters": parameters}}


ZONE = {"type": "string", "enum": ["utc", "local", "alpha"]}
AT = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}


async def test_tools_in_any_order_are_one_question(client, backend):
    """B09: order of tools and of schema members; enum, required and prefixItems keep theirs; the choice still names
    its tool; the second is a HIT, and before another user's message the forwarded tools are the same bytes."""
    names = ["zeta", "alpha", "mu"]
    choice = {"type": "function", "function": {"name": "zeta"}}
    first = [tool(n, {"zone": ZONE, "at": AT}) for n in names]
    second = [tool(n, {"at": AT, "zone": ZONE}) for n in random.Random(1).sample(names, 3)]
    answers = [await client.chat(tools=tools, tool_choice=choice) for tools in (first, second)]
    assert [a.cache for a in answers] == ["MISS", "HIT"]
    await client.chat(tools=second, tool_choice=choice, messages=[{"role": "user", "content": "other"}])
    raws = [s.body for s in backend.seen]
    spans = [raw[raw.index(b'"tools"') : raw.index(b'"tool_choice"')].rstrip(b", ") for raw in raws]
    assert spans[0] == spans[1]
    sent = json.loads(raws[0])
    assert [t["function"]["name"] for t in sent["tools"]] == sorted(names)
    assert sent["tools"][0]["function"]["parameters"]["properties"]["zone"]["enum"] == ZONE["enum"]
    assert sent["tools"][0]["function"]["parameters"]["required"] == ["zone", "at"]
    assert sent["tool_choice"] == choice


async def test_duplicate_tools_keep_their_order(client, backend):
    """B09: of equal names the first stays first."""
    twice = [tool("b", {}), {**tool("a", {}), "x": 1}, {**tool("a", {}), "x": 2}]
    await client.chat(tools=twice)
    await client.chat(tools=[twice[1], twice[0], twice[2]])
    assert [t.get("x") for t in json.loads(backend.seen[0].body)["tools"]] == [1, 2, None]
    assert len(backend.seen) == 1


NOISY = chat(
    BILLING % "a" + "Now 2026-03-01 10:00:01\r\ncafe\u0301 " + UUID,
    tools=[tool("b", {"zone": ZONE, "at": AT}), tool("a", {})],
)
OFF = {f"prefix__rules__{rule}": False for rule in ("tools", "newlines", "unicode", "nonces")}


@pytest.mark.parametrize("values", [{"prefix__mode": False}, OFF], ids=["layer off", "each rule off"])
async def test_rules_off_is_byte_identical(start, session, backend, values):
    """Whatever could be changed: the forwarded body is the caller's, byte for byte."""
    client = rig.Client((await start(**values)).base, session)
    raw = json.dumps(NOISY, indent=2).encode()
    await client.send(raw)
    assert backend.seen[0].body == raw


async def test_layer_off_wins_over_the_table(start, session, backend):
    proxy = await start(prefix__mode=False, rules=[{"set": {"prefix": {"clock": "move", "tools": True}}}])
    raw = json.dumps(NOISY, indent=2).encode()
    await rig.Client(proxy.base, session).send(raw)
    assert backend.seen[0].body == raw


async def test_rules_by_row(start, session, backend):
    """A row of the table sets a rule for its requests; the first that says something wins; the others keep the rest."""
    rows = [
        {"match": {"model": "other"}, "set": {"prefix": {"clock": "off"}}},
        {"match": {"model": "m*"}, "set": {"prefix": {"clock": "coarsen", "tools": False}}},
        {"set": {"prefix": {"clock": "move", "ids": "drop"}}},
    ]
    client = rig.Client((await start(rules=rows)).base, session)
    tools = [tool("b", {}), tool("a", {})]
    for model in ("other", "m1", "x"):
        await client.chat(chat(f"At 2026-03-01 10:00:01, {UUID}.\r\n", tools=tools), model=model)
    sent = [json.loads(s.body) for s in backend.seen]
    texts = [b["messages"][0]["content"] for b in sent]
    assert texts[0] == "At 2026-03-01 10:00:01, .\n"
    assert texts[1] == "At 2026-03-01, .\n"
    assert texts[2].startswith("At [time 1], .\n")
    assert [b["tools"][0]["function"]["name"] for b in sent] == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("values", "headers"),
    [
        ({}, {"Cache_Control": "no-store"}),
        ({"exact__mode": "off"}, {}),
        ({"exact__mode": "opt-in"}, {}),
        ({"exact__mode": "write-only"}, {}),
    ],
)
@pytest.mark.parametrize("padding", [0, 200_000])
async def test_also_for_what_is_not_looked_up(start, session, backend, values, headers, padding):
    """The backend's cache gains whether or not ours is asked; large bodies too."""
    client = rig.Client((await start(**values)).base, session)
    answer = await client.send(written(chat(BILLING % "a" + "x" * padding + "\r\nEnd.")), **headers)
    assert answer.status == 200
    assert json.loads(backend.seen[0].body)["messages"][0]["content"] == "x" * padding + "\nEnd."


async def test_packed_requests_are_changed_inside(client, backend):
    """A gzip body is unpacked, changed and packed again."""
    raw = written(chat(BILLING % "a" + STABLE))
    backend.script = gives(completion())
    await client.send(gzip.compress(raw), Content_Encoding="gzip")
    await client.send(gzip.compress(raw), Content_Encoding="gzip", Cache_Control="no-store")
    for seen in backend.seen:
        assert gzip.decompress(seen.body) == written(chat(STABLE))


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model":"m","messages":[{"role":"system","content":"a\\r\\nb"},{"role":"user","content":"u"}],"seed":1,"seed":2}',
        b'{"model":"m","messages":[{"role":"system","content":"a\\r\\nb","content":"c\\r\\nd"},{"role":"user","content":"u"}]}',
        b'{"model":"m","messages":[{"role":"system","content":"a\\r\\nb"}],"seed":99999999999999999999999}',
        b'{"model":"m","messages":[{"role":"system","content":"a\\r\\nb \\ud800"}]}',
    ],
)
@pytest.mark.parametrize("headers", [{}, {"Cache_Control": "no-store"}])
async def test_ambiguous_bodies_pass_untouched(client, backend, raw, headers):
    """What two readers may read differently is not changed at all."""
    await client.send(raw, **headers)
    assert backend.seen[0].body == raw


async def test_responses_instructions_and_tools(start, session, backend):
    """The Responses API: instructions, developer turns, flat tools; also where the answer is not kept (stateful)."""
    client = rig.Client((await start(prefix__rules__clock="coarsen")).base, session)
    tools = [{"type": "function", "name": n, "parameters": {}} for n in ("b", "a")]
    body = {"model": "m", "instructions": "At 2026-03-01 10:00:01.\r\n", "input": "At 10:00:01\r\n", "tools": tools}
    await client.send(body, path="/v1/responses")
    await client.send({**body, "previous_response_id": "r"}, path="/v1/responses")
    for seen in backend.seen:
        sent = json.loads(seen.body)
        assert sent["instructions"] == "At 2026-03-01.\n"
        assert sent["input"] == "At 10:00:01\r\n"
        assert [t["name"] for t in sent["tools"]] == ["a", "b"]


async def test_patterns_of_the_operators(start, session, backend):
    patterns = [
        {"pattern": r"tenant-\d+", "action": "replace", "text": "tenant"},
        {"pattern": r"\(build \w+\)", "action": "move"},
    ]
    client = rig.Client((await start(prefix__rules__patterns=patterns)).base, session)
    answers = [
        await client.chat(chat(f"For tenant-{n} (build {b}). " + STABLE)) for n, b in ((1, "x"), (2, "x"), (2, "y"))
    ]
    assert [a.cache for a in answers] == ["MISS", "HIT", "MISS"]
    text = json.loads(backend.seen[0].body)["messages"][0]["content"]
    assert text.startswith("For tenant [value 1]. ")
    assert text.endswith("[value 1]: (build x)")


async def test_what_a_rule_changed_is_counted_by_its_name(proxy, client, session):
    async def counted():
        async with session.get(f"{proxy.admin}/metrics") as answer:
            text = await answer.text()
        lines = [line for line in text.splitlines() if line.startswith("cacheproxy_prefix_changes_total{")]
        return {line.split('"')[1]: float(line.rpartition(" ")[2]) for line in lines}

    await client.send(written(chat(BILLING % "aaaaa" + STABLE)))
    await client.send(written(chat(BILLING % "bbbbb" + STABLE, "Another question.")))
    await client.send(written(chat(STABLE, "A third.")))
    assert await counted() == {"nonces": 2.0}
