"""A response recorded as one document -> the events of a stream that amounts to it.

The stream is the one that the Responses API describes: the response begun and empty, each output item begun, spoken
in pieces and done, then the whole document, word for word, in ``response.completed``. Nothing is told that the
document does not say. Deltas have no ``obfuscation``: it hides the length of a token from who watches the packets of
a stream in the making, and this one leaves in one go.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from cacheproxy.core.pieces import grouped, split_text

Document = dict[str, Any]

_TOLD_AT_THE_END = ("completed_at", "usage", "tool_usage", "input_messages", "output_messages")
"""Members of a response that are null until it is complete."""
_PARTS = {
    "message": (("content", "content"),),
    "reasoning": (("summary", "reasoning_summary"), ("content", "content")),
}
"""The lists of parts that an item of a type has, and what the events about such a part are called after."""
_TEXTS = {
    "output_text": ("text", "response.output_text"),
    "refusal": ("refusal", "response.refusal"),
    "reasoning_text": ("text", "response.reasoning_text"),
    "summary_text": ("text", "response.reasoning_summary_text"),
}
"""By type of part: the member that grows, and the events by which it does."""
_ARGUMENTS = {
    "function_call": ("arguments", "response.function_call_arguments"),
    "custom_tool_call": ("input", "response.custom_tool_call_input"),
}
"""By type of item: the member that grows, and the events by which it does."""


def as_events(document: Document) -> list[bytes]:
    """The events, each with its blank line, of a stream that amounts to `document`.

    Raises `TypeError` for what cannot be written as JSON, which no document is that has been found fit to be kept.
    """
    begun = {**document, "status": "in_progress", "output": []}
    begun |= {name: None for name in _TOLD_AT_THE_END if name in document}
    if isinstance(document.get("output_text"), str):
        begun["output_text"] = ""
    told = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *(event for index, item in enumerate(_objects(document.get("output"))) for event in _tell_item(index, item)),
        {"type": "response.completed", "response": document},
    ]
    return [_written(number, event) for number, event in enumerate(told)]


def _written(number: int, event: Document) -> bytes:
    kind: str = event["type"]
    data = orjson.dumps({"type": kind, "sequence_number": number, **event})
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def _objects(value: Any) -> list[Document]:
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def _lookup(table: dict[str, Any], item: Document, otherwise: Any) -> Any:
    kind = item.get("type")
    return table.get(kind, otherwise) if isinstance(kind, str) else otherwise


def _tell_item(index: int, item: Document) -> Iterator[Document]:
    """The events about one item of the output."""
    begun = {**item, "status": "in_progress"} if item.get("status") is not None else dict(item)
    item_id = item.get("id")
    at: Document = {"item_id": item_id if isinstance(item_id, str) else "", "output_index": index}
    inner: list[Document] = []
    for name, called in _lookup(_PARTS, item, ()):
        parts = item.get(name)
        if isinstance(parts, list):
            begun[name] = []
            for number, part in enumerate(_objects(parts)):
                place = {**at, "summary_index" if name == "summary" else "content_index": number}
                inner += _tell_part(f"response.{called}_part", place, part)
    name, called = _lookup(_ARGUMENTS, item, ("", ""))
    if isinstance(text := item.get(name), str):
        begun[name] = ""
        inner += [{"type": f"{called}.delta", **at, "delta": piece} for piece in split_text(text)]
        who = {"name": item["name"]} if "name" in item and item["type"] == "function_call" else {}
        inner.append({"type": f"{called}.done", **at, **who, name: text})
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    yield from inner
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _tell_part(about: str, at: Document, part: Document) -> Iterator[Document]:
    """The events about one part of a message's content or of a reasoning item; `about` is what they are called."""
    name, called = _lookup(_TEXTS, part, ("", ""))
    text = part.get(name)
    if not isinstance(text, str):
        yield {"type": f"{about}.added", **at, "part": part}
        yield {"type": f"{about}.done", **at, "part": part}
        return
    begun = {**part, name: ""}
    begun |= {lists: [] for lists in ("annotations", "logprobs") if isinstance(part.get(lists), list)}
    yield {"type": f"{about}.added", **at, "part": begun}
    logprobs = part.get("logprobs")
    logprobs = logprobs if isinstance(logprobs, list) else []
    weighed = called == "response.output_text"
    for piece, theirs in _spread(text, logprobs if weighed else []):
        yield {"type": f"{called}.delta", **at, "delta": piece, **({"logprobs": theirs} if weighed else {})}
    annotations = part.get("annotations")
    for number, annotation in enumerate(annotations if isinstance(annotations, list) else ()):
        yield {
            "type": "response.output_text.annotation.added", **at, "annotation_index": number, "annotation": annotation,
        }  # fmt: skip
    yield {"type": f"{called}.done", **at, name: text, **({"logprobs": logprobs} if weighed else {})}
    yield {"type": f"{about}.done", **at, "part": part}


def _spread(text: str, logprobs: list[Any]) -> Iterable[tuple[str, list[Any]]]:
    """The text in pieces, each with the probabilities of its tokens: all in one piece if they do not spell it."""
    if not logprobs:
        return [(piece, []) for piece in split_text(text)]
    tokens = [told.get("token") if isinstance(told, dict) else None for told in logprobs]
    spelled = [token for token in tokens if isinstance(token, str)]
    if len(spelled) != len(tokens) or "".join(spelled) != text:
        return [(text, logprobs)]
    pairs = list(zip(spelled, logprobs, strict=True))
    return [("".join(token for token, _ in group), [told for _, told in group]) for group in grouped(pairs)]
