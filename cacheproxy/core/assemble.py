"""The chunks of a stream -> the one document they amount to, and back.

Fields that the API does not name are kept: a piece's text is joined, lists grow, numbers and objects of a choice
take their last value.
"""

from typing import Any

from cacheproxy.core.model import Endpoint
from cacheproxy.core.pieces import split_text

_OBJECTS = {Endpoint.CHAT: "chat.completion", Endpoint.COMPLETIONS: "text_completion"}
_CHUNK_OBJECTS = {Endpoint.CHAT: "chat.completion.chunk", Endpoint.COMPLETIONS: "text_completion"}
_EVERY_CHUNK = ("id", "object", "created", "model", "system_fingerprint", "service_tier")
_FIRST_WINS = frozenset({"id", "created", "model"})
_CONSTANT = frozenset({"id", "type", "role", "format", "index"})
"""Fields that a stream may repeat and that are no text to be joined."""
_SPOKEN = ("reasoning_content", "reasoning", "content", "refusal")
_STREAM_ONLY = frozenset({"obfuscation"})

Document = dict[str, Any]


def assemble(chunks: list[Document], endpoint: Endpoint) -> Document:
    """The document that a stream of `chunks` amounts to."""
    document: Document = {"id": None, "object": _OBJECTS[endpoint], "created": None, "model": None, "choices": []}
    told = {"object", "choices"}
    choices: dict[int, Document] = {}
    for chunk in chunks:
        for name, value in chunk.items():
            if name in ("choices", "object") or name in _STREAM_ONLY or (name == "usage" and value is None):
                continue
            told.add(name)
            if value is None:
                document.setdefault(name, None)
            elif name not in _FIRST_WINS or not document.get(name):
                document[name] = value
        for piece in chunk.get("choices") or ():
            index = piece.get("index", 0)
            _add_piece(choices.setdefault(index, _new_choice(index, endpoint)), piece, endpoint)
    document["choices"] = [_finished(choices[index], endpoint) for index in sorted(choices)]
    return {name: value for name, value in document.items() if name in told}


def _new_choice(index: int, endpoint: Endpoint) -> Document:
    said: Document = {"message": {"role": "assistant", "content": None}} if endpoint is Endpoint.CHAT else {"text": ""}
    return {"index": index, **said, "finish_reason": None}


def _add_piece(choice: Document, piece: Document, endpoint: Endpoint) -> None:
    spoken = "delta" if endpoint is Endpoint.CHAT else "text"
    for name, value in piece.items():
        if name == "index" or (name == "message" and endpoint is Endpoint.CHAT):
            continue
        if name == spoken:
            if endpoint is Endpoint.CHAT:
                _merge(choice["message"], value or {})
            else:
                choice["text"] += value or ""
        elif value is None:
            choice.setdefault(name, None)
        elif name == "logprobs":
            gathered = dict(choice.get(name) or {})
            _merge(gathered, value)
            choice[name] = gathered
        elif isinstance(value, list) and isinstance(choice.get(name), list):
            choice[name] = [*choice[name], *value]
        else:
            choice[name] = value


def _finished(choice: Document, endpoint: Endpoint) -> Document:
    if endpoint is Endpoint.CHAT:
        message = choice["message"]
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            message["tool_calls"] = [
                {n: v for n, v in c.items() if n != "index"} if isinstance(c, dict) else c for c in calls
            ]
            message["content"] = message.get("content") or None
    return choice


def _merge(target: Document, piece: Document) -> None:
    """Add a piece to what was gathered so far."""
    for name, value in piece.items():
        old = target.get(name)
        if value is None:
            target.setdefault(name, None)
        elif isinstance(value, list):
            target[name] = _merge_lists(old if isinstance(old, list) else [], value)
        elif isinstance(value, dict):
            merged = dict(old) if isinstance(old, dict) else {}
            _merge(merged, value)
            target[name] = merged
        elif isinstance(value, str) and isinstance(old, str) and old:
            constant = name in _CONSTANT or (name == "name" and old == value)
            target[name] = old if constant else old + value
        else:
            target[name] = value


def _merge_lists(old: list[Any], new: list[Any]) -> list[Any]:
    """Items with an ``index`` are pieces of the item of that index; others are appended."""
    merged = list(old)
    for item in new:
        if isinstance(item, dict) and isinstance(item.get("index"), int):
            for i, known in enumerate(merged):
                if isinstance(known, dict) and known.get("index") == item["index"]:
                    merged[i] = dict(known)
                    _merge(merged[i], item)
                    break
            else:
                fresh: Document = {}
                _merge(fresh, item)
                merged.append(fresh)
        else:
            merged.append(item)
    return merged


def disassemble(document: Document, endpoint: Endpoint, *, with_usage: bool) -> list[Document]:
    """A stream that amounts to `document`; with its usage event last if `with_usage` and there is one."""
    base = {name: document[name] for name in _EVERY_CHUNK if name in document}
    base["object"] = _CHUNK_OBJECTS[endpoint]
    extra = {n: v for n, v in document.items() if n not in base and n not in ("choices", "usage")}
    chunks: list[Document] = []
    for choice in document["choices"]:
        pieces = _chat_pieces(choice) if endpoint is Endpoint.CHAT else _text_pieces(choice)
        chunks += [{**base, "choices": [{"index": choice.get("index", 0), **piece}]} for piece in pieces]
    if chunks and extra:
        chunks[-1].update(extra)
    if with_usage and document.get("usage") is not None:
        chunks.append({**base, "choices": [], "usage": document["usage"]})
    return chunks


def _chat_pieces(choice: Document) -> list[Document]:
    message: Document = choice["message"]
    logprobs = choice.get("logprobs")
    silent: Document = {"logprobs": None} if "logprobs" in choice else {}
    opening = {n: v for n, v in message.items() if n not in ("tool_calls", *_SPOKEN) or v is None}
    opening = {"role": "assistant", **opening}
    if isinstance(message.get("content"), str):
        opening["content"] = ""
    pieces: list[Document] = [{"delta": opening, **silent, "finish_reason": None}]
    speaker = "content" if message.get("content") is not None else None
    for name in _SPOKEN:
        text = message.get(name)
        # Token probabilities belong to the whole text, so it stays in one piece with them.
        told = logprobs if text is not None and name == (speaker or name) else None
        parts = [text] if told is not None or not isinstance(text, str) else split_text(text)
        if text == "" and name != "content":
            parts = [text]  # the opening says an empty content already
        told_here: Document = {"logprobs": told} if told is not None else silent
        pieces += [{"delta": {name: p}, **told_here, "finish_reason": None} for p in parts if p is not None]
        logprobs = None if told is not None else logprobs
    calls = [{"index": i, **call} for i, call in enumerate(message.get("tool_calls") or ())]
    pieces += [{"delta": {"tool_calls": [call]}, **silent, "finish_reason": None} for call in calls]
    others = {n: v for n, v in choice.items() if n not in ("index", "message", "logprobs")}
    told_last: Document = {"logprobs": logprobs} if "logprobs" in choice else {}
    pieces.append({"delta": {}, **told_last, **others})
    return pieces


def _text_pieces(choice: Document) -> list[Document]:
    logprobs = choice.get("logprobs")
    silent: Document = {"logprobs": None} if "logprobs" in choice else {}
    text = choice.get("text") or ""
    parts = [text] if logprobs is not None else split_text(text)
    told: Document = {"logprobs": logprobs} if "logprobs" in choice else {}
    pieces: list[Document] = [{"text": part, **told, "finish_reason": None} for part in parts]
    others = {n: v for n, v in choice.items() if n not in ("index", "text", "logprobs")}
    return [*pieces, {"text": "", **silent, **others}]
