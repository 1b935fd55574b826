"""The Responses API: which requests depend on what the backend keeps, and which answers are complete."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.outcome import Reason
from cacheproxy.core.responses import as_document, as_events, trouble_of_document, trouble_of_request
from tests.core import shapes

TEXT = {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [TEXT]}
REFUSAL = {**MESSAGE, "content": [{"type": "refusal", "refusal": "No."}]}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "f",
    "arguments": "{}",
    "status": "completed",
}
CUSTOM = {"id": "ct_1", "type": "custom_tool_call", "call_id": "call_2", "name": "g", "input": "text"}
THOUGHT = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}
SEALED = {"id": "cmp_1", "type": "compaction", "encrypted_content": "xyz"}
USAGE = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7, "output_tokens_details": {"reasoning_tokens": 0}}
RESPONSE: dict[str, Any] = {
    "id": "resp_1", "object": "response", "created_at": 1700000000, "status": "completed", "error": None,
    "incomplete_details": None, "model": "m", "output": [MESSAGE], "previous_response_id": None, "usage": USAGE,
    "max_output_tokens": None, "metadata": {"id": "resp_1"},
}  # fmt: skip


def response(*items: Any, **fields: Any) -> dict[str, Any]:
    """A response of these output items, fields changed."""
    return copy.deepcopy({**RESPONSE, "output": list(items), **fields})


def without(document: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in names}


SEEN = {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_file", "file_id": "file_1"}]}
STATELESS = {
    "a text": {"input": "Say hi"},
    "messages": {"input": [{"role": "user", "content": "a"}, {**MESSAGE, "id": "msg_1"}, SEEN]},
    "nulls": {"input": "a", "previous_response_id": None, "conversation": None, "prompt": None, "background": None},
    "background off": {"input": "a", "background": False, "store": True},
    "a tool round": {"input": [CALL, {"type": "function_call_output", "id": "fo_1", "call_id": "call_1", "output": ""}]},
    "a custom tool round": {"input": [CUSTOM, {"type": "custom_tool_call_output", "call_id": "call_2", "output": []}]},
    "sealed thoughts": {"input": [{**THOUGHT, "encrypted_content": "xyz"}, SEALED]},
    "open thoughts": {"input": [{**THOUGHT, "content": [{"type": "reasoning_text", "text": "a"}]}]},
    "a summary without id": {"input": [without(THOUGHT, "id")]},
    "built-in tools": {"input": "a", "tools": [
        {"type": "web_search"}, {"type": "file_search", "vector_store_ids": ["vs_1"]}, {"type": "image_generation"},
        {"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["file_1"]}}, {"type": "local_shell"},
        {"type": "mcp", "server_label": "a", "server_url": "https://a"}, {"type": "computer_use_preview"},
        {"type": "shell", "environment": {"type": "container_auto", "skills": [{"type": "inline", "name": "a"}]}},
    ]},
    "a parameter called container": {"input": "a", "tools": [
        {"type": "function", "name": "f", "parameters": {"properties": {"container": {"type": "string"}, "id": {}}}}
    ]},
    "an image made": {"input": [{"type": "image_generation_call", "id": "ig_1", "result": "aGk="}]},
    "files found": {"input": [{"type": "file_search_call", "id": "fs_1", "queries": [], "results": [{"text": "a"}]}]},
    "an empty message": {"input": [{"role": "user", "content": ""}]},
    "cache options": {"input": "a", "prompt_cache_options": {"ttl": "30m", "comparison_response_id": None}},
}  # fmt: skip
STATEFUL = {
    "the response before": {"previous_response_id": "resp_1"},
    "an empty id": {"previous_response_id": ""},
    "a conversation": {"conversation": "conv_1"},
    "a conversation object": {"conversation": {"id": "conv_1"}},
    "in the background": {"background": True},
    "a background that is none": {"background": []},
    "a stored prompt": {"prompt": {"id": "pmpt_1"}},
    "a pinned prompt": {"prompt": {"id": "pmpt_1", "version": "2", "variables": {"a": "b"}}},
    "a prompt by name": {"prompt": "pmpt_1"},
    "a response to compare with": {"prompt_cache_options": {"comparison_response_id": "resp_1"}},
    "an item by reference": {"input": [SEEN, {"type": "item_reference", "id": "msg_1"}]},
    "an id alone": {"input": [{"id": "msg_1"}]},
    "an id with labels": {"input": [{"id": "msg_1", "type": "message", "role": "assistant", "status": None}]},
    "an id with nothing": {"input": [{"id": "msg_1", "role": "assistant", "content": []}]},
    "thoughts by id": {"input": [{"id": "rs_1", "type": "reasoning", "summary": []}]},
    "thoughts by id and summary": {"input": [{**THOUGHT, "encrypted_content": None, "content": []}]},
    "an image by id": {"input": [{"type": "image_generation_call", "id": "ig_1"}]},
    "an image not brought along": {"input": [{"type": "image_generation_call", "id": "ig_1", "result": None}]},
    "files not brought along": {"input": [{"type": "file_search_call", "queries": ["a"], "results": None}]},
    "pages read": {"input": [{"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "a"}}]},
    "code run": {"input": [{"type": "code_interpreter_call", "id": "ci_1", "code": "1", "container_id": "cntr_1"}]},
    "an approval": {"input": [{"type": "mcp_approval_response", "approval_request_id": "a", "approve": True}]},
    "a part by id": {"input": [{"role": "user", "content": [{"type": "input_audio", "id": "audio_1"}]}]},
    "an output by id": {"input": [{"type": "function_call_output", "call_id": "a", "output": [{"id": "x"}]}]},
    "a container": {"tools": [{"type": "code_interpreter", "container": "cntr_1"}]},
    "a shell's container": {"tools": [{"type": "shell", "environment": {"container_id": "cntr_1"}}]},
    "a skill": {"tools": [{"type": "shell", "environment": {"skills": [{"skill_id": "skill_1", "version": "1"}]}}]},
    "a container brought later": {"input": [{"type": "additional_tools", "tools": [{"container": "cntr_1"}]}]},
}  # fmt: skip


@pytest.mark.parametrize("name", STATELESS)
def test_what_a_request_says_itself_may_be_kept(name):
    assert trouble_of_request(STATELESS[name]) is None


@pytest.mark.parametrize("name", STATEFUL)
def test_what_the_backend_keeps_makes_a_request_stateful(name):
    """The same words may have another answer, or none, once the backend's side has changed."""
    assert trouble_of_request({"input": "a", **STATEFUL[name]}) is Reason.STATEFUL


KEPT = {
    "a message": response(MESSAGE),
    "a refusal": response(REFUSAL),
    "a call": response(CALL),
    "a custom call": response(CUSTOM),
    "thoughts and a message": response(THOUGHT, MESSAGE),
    "a call without status": response({**CALL, "status": None}),
    "open thoughts": response({**THOUGHT, "content": [{"type": "reasoning_text", "text": "a"}], "status": None}, CALL),
    "thoughts without summary": response({**THOUGHT, "summary": None, "content": None}, CALL),
    "a context made smaller": response(SEALED, MESSAGE),
    "no object": without(RESPONSE, "object"),
    "no usage": response(MESSAGE, usage=None),
    "an unknown part beside": response({**MESSAGE, "content": [TEXT, {"type": "x", "text": 1}]}),
    "probabilities": response({**MESSAGE, "content": [{**TEXT, "logprobs": [{"token": "Hello"}]}]}),
    "fewer tokens than allowed": response(MESSAGE, max_output_tokens=5),
    "unknown members": response({**MESSAGE, "x": [1]}, x={"y": None}),
    "the requests' names": response(MESSAGE, store=False, user="u", background=False, conversation=None),
}  # fmt: skip
REFUSED = {
    "an error": (response(MESSAGE, error={"code": "server_error"}), Reason.IN_BAND_ERROR),
    "an error object": ({"object": "error", "message": "a"}, Reason.IN_BAND_ERROR),
    "failed": (response(status="failed"), Reason.IN_BAND_ERROR),
    "cut by the limit": (response(MESSAGE, status="incomplete"), Reason.FINISH_REASON),
    "cut, and completed": (response(MESSAGE, incomplete_details={"reason": "content_filter"}), Reason.FINISH_REASON),
    "going on": (response(MESSAGE, status="in_progress"), Reason.UNFINISHED_CHOICE),
    "waiting": (response(status="queued"), Reason.UNFINISHED_CHOICE),
    "cancelled": (response(MESSAGE, status="cancelled"), Reason.UNFINISHED_CHOICE),
    "no status": (without(RESPONSE, "status"), Reason.UNFINISHED_CHOICE),
    "a status that is none": (response(MESSAGE, status=["completed"]), Reason.MALFORMED),
    "another object": (response(MESSAGE, object="chat.completion"), Reason.MALFORMED),
    "no output": (without(RESPONSE, "output"), Reason.MALFORMED),
    "an output that is none": (response(output={}), Reason.MALFORMED),
    "an empty output": (response(), Reason.EMPTY),
    "only thoughts": (response(THOUGHT), Reason.EMPTY),
    "an empty text": (response({**MESSAGE, "content": [{**TEXT, "text": ""}]}), Reason.EMPTY),
    "a message of thoughts": (
        response({**MESSAGE, "content": [{"type": "reasoning_text", "text": "a"}]}), Reason.EMPTY
    ),
    "no parts": (response({**MESSAGE, "content": []}), Reason.EMPTY),
    "an item unfinished": (response(CALL, {**MESSAGE, "status": "in_progress"}), Reason.UNFINISHED_CHOICE),
    "an item cut": (response({**CALL, "status": "incomplete"}), Reason.FINISH_REASON),
    "thoughts cut": (response({**THOUGHT, "status": "incomplete"}, MESSAGE), Reason.FINISH_REASON),
    "an item failed": (response({**CALL, "status": "failed"}), Reason.IN_BAND_ERROR),
    "an item's odd status": (response({**CALL, "status": 1}), Reason.MALFORMED),
    "an item that is none": (response(MESSAGE, "a"), Reason.MALFORMED),
    "an item without type": (response(without(MESSAGE, "type")), Reason.MALFORMED),
    "an item of an odd type": (response({**MESSAGE, "type": ["message"]}), Reason.MALFORMED),
    "a text as content": (response({**MESSAGE, "content": "Hello"}), Reason.MALFORMED),
    "a part that is none": (response({**MESSAGE, "content": ["Hello"]}), Reason.MALFORMED),
    "a part without type": (response({**MESSAGE, "content": [{"text": "Hello"}]}), Reason.MALFORMED),
    "a text that is none": (response({**MESSAGE, "content": [{**TEXT, "text": None}]}), Reason.MALFORMED),
    "odd probabilities": (response({**MESSAGE, "content": [{**TEXT, "logprobs": {}}]}), Reason.MALFORMED),
    "odd annotations": (response({**MESSAGE, "content": [{**TEXT, "annotations": "a"}]}), Reason.MALFORMED),
    "odd arguments": (response({**CALL, "arguments": {}}), Reason.MALFORMED),
    "odd input": (response({**CUSTOM, "input": None}), Reason.MALFORMED),
    "an odd summary": (response({**THOUGHT, "summary": "a"}, MESSAGE), Reason.MALFORMED),
    "odd thoughts": (response({**THOUGHT, "content": [1]}, MESSAGE), Reason.MALFORMED),
    "sound": (response({**MESSAGE, "content": [TEXT, {"type": "output_audio", "data": "a"}]}), Reason.AUDIO),
    "another response used": (response(MESSAGE, previous_response_id="resp_0"), Reason.STATEFUL),
    "a conversation grown": (response(MESSAGE, conversation={"id": "conv_1"}), Reason.STATEFUL),
    "as many tokens as allowed": (response(MESSAGE, max_output_tokens=4), Reason.FINISH_REASON),
    "a tool's output read": (
        response(MESSAGE, usage={**USAGE, "output_tokens_details": {"tool_output_tokens": 9}}), Reason.SIDE_EFFECTS
    ),
    **{
        f"a {kind}": (response({"id": "x", "type": kind, "status": "completed"}, MESSAGE), Reason.SIDE_EFFECTS)
        for kind in (
            "web_search_call", "file_search_call", "code_interpreter_call", "computer_call", "image_generation_call",
            "mcp_call", "mcp_list_tools", "mcp_approval_request", "local_shell_call", "shell_call", "shell_call_output",
            "apply_patch_call", "function_call_output", "tool_search_call", "program", "something_new",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_a_complete_response_is_kept(name):
    assert trouble_of_document(KEPT[name]) is None


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_proven_complete_is_refused(name):
    document, reason = REFUSED[name]
    assert trouble_of_document(document) is reason


@pytest.mark.parametrize(
    ("limit", "reason"), [(3, Reason.FINISH_REASON), (4, Reason.FINISH_REASON), (5, None), (None, None)]
)
def test_an_answer_as_long_as_the_request_allows_was_cut(limit, reason):
    """Also where the backend says that it is complete, and does not repeat the limit."""
    assert trouble_of_document(without(RESPONSE, "max_output_tokens"), limit) is reason


def test_without_a_count_the_limit_says_nothing():
    assert trouble_of_document(response(MESSAGE, usage=None, max_output_tokens=1), 1) is None
    assert trouble_of_document(response(MESSAGE, usage={"output_tokens": 0}, max_output_tokens=0), 0) is None


@pytest.mark.parametrize("limit", [0, -1, True, "4", 4.0, None])
def test_what_is_no_limit_cuts_nothing(limit):
    """Some backends write "as much as you like" as a number."""
    assert trouble_of_document(response(MESSAGE, max_output_tokens=limit)) is None


def test_what_is_nested_too_deep_to_be_written_again_is_refused():
    """What is kept can be given back in either form, and that is no matter of luck."""
    found = set()
    deep: Any = 1
    for levels in range(1, 300):
        deep = [deep]
        document = response(MESSAGE, x=deep) if levels < 240 else {**RESPONSE, "x": deep}
        trouble = trouble_of_document(document)
        found.add((levels > 200, trouble))
        if trouble is None:
            assert as_document(b"".join(as_events(document)))["id"] == "resp_1"
    assert found == {(False, None), (True, None), (True, Reason.MALFORMED)}


NAMES = st.sampled_from([
    "id", "type", "status", "content", "output", "summary", "text", "arguments", "input", "tools", "container", "error",
    "environment", "skills", "background", "prompt_cache_options", "usage", "output_tokens_details", "logprobs", "x",
])  # fmt: skip
WORDS = st.sampled_from(["message", "output_text", "reasoning", "function_call", "completed", "item_reference"])
junk = st.recursive(
    shapes.leaves | WORDS, lambda v: st.lists(v, max_size=3) | st.dictionaries(NAMES, v, max_size=4), max_leaves=9
)
odd = st.dictionaries(NAMES, junk, max_size=4)


@given(odd, junk, odd)
def test_no_request_and_no_document_is_beyond_judging(fields, item, more):
    """Whatever is sent: a judgement, and what is judged fit can be given as a stream and read back."""
    assert trouble_of_request({"tools": [fields, item], "input": [item, fields], **more}) in {None, Reason.STATEFUL}
    for document in (
        fields, response(item, fields), response(MESSAGE, **more), response({**MESSAGE, **fields}, {**THOUGHT, **more}),
        response({**CALL, **more}, {**MESSAGE, "content": [TEXT, {**TEXT, **fields}]}),
    ):  # fmt: skip
        if trouble_of_document(document) is None:
            assert shapes.plain(as_document(b"".join(as_events(document)))) == shapes.plain(document)
