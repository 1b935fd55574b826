"""Well-formed answers of a backend, of every kind the API knows, for the suites of assembling and replaying."""

from typing import Any

from hypothesis import strategies as st

from tests.core import shapes

words = st.lists(
    st.sampled_from(["Hello", " ", "world", "\n", "漢字", "é", "  ", '"id":"x"', "[DONE]", "\u00a0", "\x1c"]),
    max_size=30,
)
spoken = words.map("".join) | shapes.texts
tokens = st.fixed_dictionaries(
    {"token": shapes.texts, "logprob": shapes.floats, "bytes": st.none() | st.lists(st.integers(0, 255))}
)
logprobs = st.fixed_dictionaries(
    {"content": st.lists(tokens, min_size=1, max_size=3)},
    optional={"refusal": st.none() | st.lists(tokens, max_size=2)},
)
usages = st.fixed_dictionaries({
    "prompt_tokens": st.integers(0, 99), "completion_tokens": st.integers(0, 99), "total_tokens": st.integers(0, 99),
    "completion_tokens_details": st.fixed_dictionaries({"reasoning_tokens": st.integers(0, 9)}),
})  # fmt: skip
functions = st.fixed_dictionaries({"name": st.sampled_from(["f", "get_weather"]), "arguments": shapes.texts})
calls = st.fixed_dictionaries(
    {"id": st.sampled_from(["call_1", "chatcmpl-1", ""]), "type": st.just("function"), "function": functions}
)
unknown = st.dictionaries(st.sampled_from(["x_y", "x_z"]), shapes.leaves | shapes.objects, max_size=2)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    told = {
        "reasoning_content": st.none() | spoken, "reasoning": spoken, "refusal": st.none() | spoken,
        "annotations": st.lists(st.fixed_dictionaries({"type": st.just("url_citation"), "url": shapes.texts}),
        max_size=2),
        "tool_calls": st.lists(calls, min_size=1, max_size=3), "audio": st.none(), "function_call": st.none(),
    }  # fmt: skip
    content = draw(st.none() | spoken)
    message = {
        "role": "assistant",
        "content": content,
        **draw(st.fixed_dictionaries({}, optional=told)),
        **draw(unknown),
    }
    if message.get("tool_calls"):
        message["content"] = content or None  # the API gives no empty text beside calls
    return message


@st.composite
def documents(draw: st.DrawFn, choice: st.SearchStrategy, kind: str) -> dict[str, Any]:
    choices = draw(st.lists(choice, min_size=1, max_size=3))
    head = {
        "id": f"{'chatcmpl' if kind.startswith('chat') else 'cmpl'}-1",
        "object": kind,
        "created": 1700000000,
        "model": "m",
    }
    more = {
        "usage": usages, "system_fingerprint": st.none() | st.just("fp_1"),
        "service_tier": st.none() | st.just("default"),
        "timings": st.fixed_dictionaries({"predicted_ms": shapes.floats}),
        "prompt_filter_results": st.lists(shapes.leaves),
    }  # fmt: skip
    return {
        **head,
        "choices": [{"index": i, **c} for i, c in enumerate(choices)],
        **draw(st.fixed_dictionaries({}, optional=more)),
    }


chat_choices = st.fixed_dictionaries(
    {"message": messages(), "logprobs": st.none() | logprobs, "finish_reason": st.sampled_from(["stop", "tool_calls"])},
    optional={"content_filter_results": shapes.objects, "stop_reason": st.none() | st.integers(0, 9)},
)
text_logprobs = st.fixed_dictionaries(
    {"tokens": st.lists(shapes.texts, max_size=3), "text_offset": st.lists(st.integers(0, 9), max_size=3)}
)
text_choices = st.fixed_dictionaries(
    {"text": spoken, "logprobs": st.none() | text_logprobs, "finish_reason": st.just("stop")},
    optional={"stop_reason": st.none() | st.integers(0, 9)},
)
chat_answers = documents(chat_choices, "chat.completion")
text_answers = documents(text_choices, "text_completion")
