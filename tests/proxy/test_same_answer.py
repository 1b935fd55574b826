"""A HIT says what the MISS said: every field but `id` and `created`, in every pair of forms.

Each kind of answer is written down twice, as the document and as the stream that amounts to it; whichever the backend
gives, both are served from it.
"""

import json
from typing import Any

import pytest

from tests.fakes.backend import event, gives, streams
from tests.proxy import wire
from tests.rig import CHAT, Answer

COMPLETIONS = "/v1/completions"
USAGE = {
    "prompt_tokens": 5,
    "completion_tokens": 2,
    "total_tokens": 7,
    "completion_tokens_details": {"reasoning_tokens": 1},
}
HEAD = {"id": "chatcmpl-abc123", "object": "chat.completion", "created": 1700000000, "model": "m"}
TEXT_HEAD = {"id": "cmpl-abc123", "object": "text_completion", "created": 1700000000, "model": "m"}
PIECE = {**HEAD, "object": "chat.completion.chunk"}


def document(*choices: dict, **fields) -> dict:
    return {**HEAD, "choices": [{"index": i, **c} for i, c in enumerate(choices)], "usage": USAGE, **fields}


def message(**fields) -> dict:
    return {"message": {"role": "assistant", **fields}, "finish_reason": "stop"}


def pieces(*deltas: dict, finish: str | None = "stop", index: int = 0) -> list[dict]:
    parts = [{"index": index, "delta": delta, "finish_reason": None} for delta in deltas]
    return [{**PIECE, "choices": [p]} for p in [*parts, {"index": index, "delta": {}, "finish_reason": finish}]]


def token(text: str) -> dict:
    return {
        "token": text,
        "logprob": -0.25,
        "bytes": list(text.encode()),
        "top_logprobs": [{"token": "x", "logprob": -9.5}],
    }


CALLS = [
    {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Zürich"}'}},
    {"id": "call_2", "type": "function", "function": {"name": "stop", "arguments": "{}"}},
]
CALL_PIECES = [
    {"role": "assistant", "content": None},
    {
        "tool_calls": [
            {"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}
        ]
    },
    {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": '}}]},
    {"tool_calls": [{"index": 1, "id": "call_2", "type": "function", "function": {"name": "stop", "arguments": "{}"}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": '"Zürich"}'}}]},
]
CITED = [{"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A"}}]

KINDS: dict[str, tuple[dict, dict, list[dict]]] = {
    "text": (
        {},
        document(message(content="Hello, 世界.\n\n  x = 1\n")),
        pieces({"role": "assistant", "content": ""}, {"content": "Hello, 世"}, {"content": "界.\n\n"}, {"content": "  x = 1\n"}),
    ),
    "tool calls": (
        {},
        document({**message(content=None, tool_calls=CALLS), "finish_reason": "tool_calls"}),
        pieces(*CALL_PIECES, finish="tool_calls"),
    ),
    "calls that repeat their id": (
        {},
        document({**message(content=None, tool_calls=CALLS[:1]), "finish_reason": "tool_calls"}),
        pieces(
            {"role": "assistant", "content": None},
            *(
                {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": part}}]}
                for name, part in (("get_weather", '{"city": '), (None, '"Zürich"}'))
            ),
            finish="tool_calls",
        ),
    ),
    "reasoning": (
        {},
        document(message(reasoning_content="Let me think.", content="42")),
        pieces({"role": "assistant", "content": ""}, {"reasoning_content": "Let me "}, {"reasoning_content": "think."}, {"content": "42"}),
    ),
    "reasoning by another name": (
        {},
        document(message(reasoning="Hm.", content="42")),
        pieces({"role": "assistant", "content": ""}, {"reasoning": "Hm."}, {"content": "42"}),
    ),
    "refusal": (
        {},
        document(message(content=None, refusal="I would rather not.")),
        pieces({"role": "assistant", "content": None}, {"refusal": "I would "}, {"refusal": "rather not."}),
    ),
    "unknown fields": (
        {},
        document(
            {**message(content="Hi", annotations=CITED, x_y={"deep": [1, 2.5, None]}), "x_choice": 7},
            x_top={"a": 1e-7}, system_fingerprint="fp_1", service_tier="default",
        ),
        [
            {**p, "system_fingerprint": "fp_1", "service_tier": "default"} for p in
            pieces({"role": "assistant", "content": "Hi", "annotations": CITED, "x_y": {"deep": [1, 2.5, None]}})
        ] + [{**PIECE, "choices": [{"index": 0, "delta": {}, "x_choice": 7}], "x_top": {"a": 1e-7}}],
    ),
    "several choices": (
        {"n": 3},
        document(message(content="a b"), message(content="c"), message(content="")),
        [
            *pieces({"role": "assistant", "content": "a "}), *pieces({"role": "assistant", "content": "c"}, index=1),
            *pieces({"role": "assistant", "content": ""}, index=2), *pieces({"content": "b"}),
        ],
    ),
    "its own id as a text": (
        {},
        document(message(content='"id":"chatcmpl-abc123" "created":1700000000 chatcmpl-abc123 1700000000')),
        pieces(
            {"role": "assistant", "content": '"id":"chatcmpl-abc123" "created":1700000000'},
            {"content": " chatcmpl-abc123 1700000000"},
        ),
    ),
    "what looks like a stream": (
        {},
        document(message(content="data: [DONE]\n\nevent: error\ndata: {}\n\n\u2028\u0085\r\n")),
        pieces({"role": "assistant", "content": "data: [DONE]\n\nevent: error\n"}, {"content": "data: {}\n\n\u2028\u0085\r\n"}),
    ),
}  # fmt: skip


def merge(target: dict, piece: dict) -> None:
    """Add a piece of a message as the API's documentation says: texts are joined, calls go by their index."""
    for name, value in piece.items():
        if name == "tool_calls":
            for part in value:
                calls = target.setdefault(name, [])
                if part["index"] == len(calls):
                    calls.append({"function": {"arguments": ""}})
                call = calls[part["index"]]
                call.update({k: v for k, v in part.items() if k in ("id", "type")})
                call["function"]["name"] = part["function"].get("name") or call["function"]["name"]
                call["function"]["arguments"] += part["function"].get("arguments") or ""
        elif isinstance(value, str) and isinstance(target.get(name), str) and name != "role":
            target[name] += value
        elif value is not None or name not in target:
            target[name] = value


def weigh(choice: dict, logprobs: dict | None) -> None:
    """Add the probabilities of a piece's tokens: lists are joined."""
    if logprobs is None:
        choice.setdefault("logprobs", None)
        return
    known = choice.get("logprobs") or {}
    choice["logprobs"] = {
        k: [*known.get(k, []), *v] if isinstance(v, list) else known.get(k, v) for k, v in logprobs.items()
    }


def gathered(documents: list[dict]) -> dict[str, Any]:
    """The document that a stream amounts to."""
    whole: dict[str, Any] = {}
    choices: dict[int, dict] = {}
    for piece in documents:
        for part in piece["choices"]:
            choice = choices.setdefault(part["index"], {"index": part["index"]})
            if "delta" in part:
                merge(choice.setdefault("message", {}), part["delta"])
            else:
                choice["text"] = choice.get("text", "") + part.get("text", "")
            weigh(choice, part.get("logprobs"))
            choice.update({k: v for k, v in part.items() if k not in ("delta", "text", "logprobs") and v is not None})
        whole.update({k: v for k, v in piece.items() if v is not None})
    whole["choices"] = [choices[i] for i in sorted(choices)]
    whole["object"] = whole["object"].removesuffix(".chunk")
    return whole


def tidy(found: dict) -> dict:
    """Without what differs by rule: id and time; and nulls, which a stream has no need to say."""

    def solid(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: solid(v) for k, v in value.items() if v is not None}
        return [solid(v) for v in value] if isinstance(value, list) else value

    plain = solid({k: v for k, v in found.items() if k not in ("id", "created")})
    for choice in plain["choices"]:
        if isinstance(choice.get("message"), dict) and not choice["message"].get("content"):
            choice["message"].pop("content", None)
    return plain


def ask(stream: bool, fields: dict) -> dict:
    options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    return {"model": "m", "messages": [], "prompt": "x", **fields, **options}


def backend_gives(kind: tuple[dict, dict, list[dict]], *, stream: bool):
    if not stream:
        return gives(json.dumps(kind[1], ensure_ascii=False).encode())
    head = PIECE if "message" in kind[1]["choices"][0] else TEXT_HEAD
    return streams(*(event(p) for p in kind[2]), event({**head, "choices": [], "usage": USAGE}))


LOGPROBS = {"content": [token("a"), token("b")], "refusal": None}
TEXT_LOGPROBS = {
    "tokens": ["a", "b"],
    "token_logprobs": [-0.5, -1.0],
    "top_logprobs": [{"a": -0.5}, None],
    "text_offset": [0, 1],
}
KINDS["logprobs"] = (
    {"logprobs": True},
    document({**message(content="ab"), "logprobs": LOGPROBS}),
    [
        {**PIECE, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None}]},
        {**PIECE, "choices": [{"index": 0, "delta": {"content": "ab"}, "logprobs": LOGPROBS}]}, pieces()[0],
    ],
)  # fmt: skip
KINDS["completions"] = (
    {"n": 2},
    {
        **TEXT_HEAD, "usage": USAGE,
        "choices": [
            {"index": i, "text": text, "logprobs": TEXT_LOGPROBS, "finish_reason": "stop", "stop_reason": 7}
            for i, text in enumerate(["a b\n", "  c"])
        ],
    },
    [
        {**TEXT_HEAD, "choices": [{"index": i, "text": text, "logprobs": TEXT_LOGPROBS, "finish_reason": None}]}
        for i, text in enumerate(["a b\n", "  c"])
    ] + [
        {**TEXT_HEAD, "choices": [{"index": i, "text": "", "finish_reason": "stop", "stop_reason": 7}]} for i in (1, 0)
    ],
)  # fmt: skip


def of(answer: Answer, *, stream: bool) -> dict:
    return gathered(answer.documents) if stream else answer.json


@pytest.mark.parametrize("kind", KINDS)
def test_both_ways_of_writing_it_are_one(kind):
    """What these tests stand on: the stream written down amounts to the document written down."""
    _, whole, parts = KINDS[kind]
    assert tidy({**gathered(parts), "usage": USAGE}) == tidy(whole)


@pytest.mark.parametrize("asked", [False, True], ids=["as JSON", "as a stream"])
@pytest.mark.parametrize("recorded", [False, True], ids=["from JSON", "from a stream"])
@pytest.mark.parametrize("kind", KINDS)
async def test_hit_says_what_the_miss_said(client, backend, kind, recorded, asked):
    """B17, B21, B55: tool calls, reasoning, logprobs, refusals, unknown fields, several choices; both operations."""
    fields, whole, _ = KINDS[kind]
    path = COMPLETIONS if kind == "completions" else CHAT
    backend.script = backend_gives(KINDS[kind], stream=recorded)
    one = await client.send(ask(recorded, fields), path=path)
    two = await client.send(ask(asked, fields), path=path)
    assert (one.cache, two.cache, backend.calls) == ("MISS", "HIT", 1)
    assert tidy(of(one, stream=recorded)) == tidy(whole)
    assert tidy(of(two, stream=asked)) == tidy(whole)


@pytest.mark.parametrize("kind", KINDS)
async def test_hit_in_the_same_form_is_the_same_bytes(client, backend, kind):
    """But for the id and the time: not a number is written otherwise, not an escape, not a space."""
    fields, _, _ = KINDS[kind]
    path = COMPLETIONS if kind == "completions" else CHAT
    for stream in (False, True):
        backend.script = backend_gives(KINDS[kind], stream=stream)
        namespace = {"X_Cache_Namespace": str(stream)}
        one, two = [await client.send(ask(stream, fields), path=path, **namespace) for _ in range(2)]
        assert two.cache == "HIT"
        first = two.documents[0] if stream else two.json
        given = (KINDS[kind][2][0] if stream else KINDS[kind][1])["id"]
        assert first["id"] != given and first["created"] > 1700000000
        expected = one.body.replace(f'"id": "{given}"'.encode(), f'"id": "{first["id"]}"'.encode())
        assert two.body == expected.replace(b'"created": 1700000000', f'"created": {first["created"]}'.encode())


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("asked", [False, True])
async def test_every_hit_has_an_id_and_a_time_of_its_own(client, backend, recorded, asked):
    """One for all its events, in the backend's style."""
    backend.script = backend_gives(KINDS["text"], stream=recorded)
    await client.send(ask(recorded, {}))
    ids = set()
    for _ in range(3):
        answer = await client.send(ask(asked, {}))
        found = {(d["id"], d["created"]) for d in (answer.documents if asked else [answer.json])}
        assert len(found) == 1
        ids |= found
    assert len({i for i, _ in ids}) == 3
    assert all(i.startswith("chatcmpl-") and i != HEAD["id"] and created > 1700000000 for i, created in ids)


async def test_usage_is_given_with_a_replayed_stream_only_if_asked(proxy, backend):
    backend.script = backend_gives(KINDS["tool calls"], stream=False)
    await wire.ask(proxy.port, wire.request(ask(False, {})))
    quiet = {**ask(True, {}), "stream_options": {"include_usage": False}}
    answer = await wire.ask(proxy.port, wire.request(quiet))
    assert (answer.get(b"x-cache"), b'"usage"' in answer.body) == (b"HIT", False)
