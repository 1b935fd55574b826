"""The chunks of a stream -> the one document they amount to, and back.

Fields that the API does not name are kept: a delta's text is joined, its lists grow; what stands beside it takes its
last value, and what says nothing takes nothing away. Whether that is what the backend would have said, `doubt` tells.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from cacheproxy.core.doubt import CONSTANT, INDEXED, STREAM_ONLY, is_nothing
from cacheproxy.core.model import Endpoint
from cacheproxy.core.pieces import grouped, split_text

_OBJECTS = {Endpoint.CHAT: "chat.completion", Endpoint.COMPLETIONS: "text_completion"}
_CHUNK_OBJECTS = {Endpoint.CHAT: "chat.completion.chunk", Endpoint.COMPLETIONS: "text_completion"}
_EVERY_CHUNK = ("id", "object", "created", "model", "system_fingerprint", "service_tier")
_FIRST_WINS = frozenset({"id", "created", "model"})
_SPOKEN = ("reasoning_content", "reasoning", "content", "refusal")

Document = dict[str, Any]


def assemble(chunks: list[Document], endpoint: Endpoint) -> Document:
    """The document that a stream of `chunks` amounts to."""
    document: Document = {"id": None, "object": _OBJECTS[endpoint], "created": None, "model": None, "choices": []}
    told = {"object", "choices"}
    choices: dict[int, Document] = {}
    for chunk in chunks:
        for name, value in chunk.items():
            if name in ("choices", "object") or name in STREAM_ONLY or (name == "usage" and value is None):
                continue
            told.add(name)
            if name not in _FIRST_WINS or not document.get(name):
                _set(document, name, value)
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
        elif name == "logprobs" and value is not None:
            gathered = dict(choice.get(name) or {})
            _merge(gathered, value)
            choice[name] = gathered
        elif name == "token_ids" and isinstance(value, list) and isinstance(choice.get(name), list):
            choice[name] = [*choice[name], *value]
        else:
            _set(choice, name, value)


def _set(target: Document, name: str, value: Any) -> None:
    """What says nothing does not take the place of what says something."""
    if not is_nothing(value) or target.get(name) is None:
        target[name] = value


def _finished(choice: Document, endpoint: Endpoint) -> Document:
    if endpoint is Endpoint.CHAT:
        message = choice["message"]
        calls = message.get("tool_calls")
        if isinstance(calls, list) and calls:
            if all(isinstance(call.get("index"), int) for call in calls):
                calls.sort(key=lambda call: int(call["index"]))
            message["tool_calls"] = [{n: v for n, v in call.items() if n != "index"} for call in calls]
            message["content"] = message.get("content") or None
    return choice


def _merge(target: Document, piece: Document) -> None:
    """Add a piece to what was gathered so far."""
    for name, value in piece.items():
        old = target.get(name)
        if is_nothing(value):
            _set(target, name, value)
        elif isinstance(value, list) and name in INDEXED:
            target[name] = _merge_lists(old if isinstance(old, list) else [], value)
        elif isinstance(value, list) and isinstance(old, list):
            target[name] = [*old, *value]
        elif isinstance(value, dict) and isinstance(old, dict):
            target[name] = dict(old)
            _merge(target[name], value)
        elif isinstance(value, str) and isinstance(old, str) and old:
            constant = name in CONSTANT or (name == "name" and old == value)
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
                merged.append(item)
        else:
            merged.append(item)
    return merged


def disassemble(document: Document, endpoint: Endpoint, *, with_usage: bool) -> list[Document]:
    """A stream that amounts to `document`; with its usage event last if `with_usage` and there is one."""
    base = {name: document[name] for name in _EVERY_CHUNK if name in document}
    base["object"] = _CHUNK_OBJECTS[endpoint]
    extra = {n: v for n, v in document.items() if n not in base and n not in ("choices", "usage")}
    chunks: list[Document] = []
    for position, choice in enumerate(document["choices"]):
        pieces = _chat_pieces(choice) if endpoint is Endpoint.CHAT else _text_pieces(choice)
        index = choice.get("index", position)
        chunks += [{**base, "choices": [{"index": index, **piece}]} for piece in pieces]
    if chunks and extra:
        chunks[-1].update(extra)
    if with_usage and document.get("usage") is not None:
        chunks.append({**base, "choices": [], "usage": document["usage"]})
    return chunks


def _chat_pieces(choice: Document) -> list[Document]:
    message: Document = choice["message"]
    logprobs = choice.get("logprobs")
    silent: Document = {"logprobs": None} if "logprobs" in choice else {}
    calls = message.get("tool_calls")
    opening = {n: v for n, v in message.items() if n not in _SPOKEN or v is None}
    opening = {"role": "assistant", **opening}
    if calls:
        del opening["tool_calls"]
    if isinstance(message.get("content"), str):
        opening["content"] = ""
    pieces: list[Document] = [{"delta": opening, **silent, "finish_reason": None}]
    speaker = "content" if message.get("content") is not None else None
    for name in _SPOKEN:
        text = message.get(name)
        if text is None or (text == "" and name == "content" and logprobs is None):
            continue  # the opening says an empty content already
        spread: Iterable[tuple[Any, Document | None]]
        if logprobs is not None and name == (speaker or name):
            spread = _spread(text, logprobs, name)
            logprobs = None
        else:
            spread = [(part, None) for part in (split_text(text) or [""] if isinstance(text, str) else [text])]
        for part, told in spread:
            told_here: Document = silent if told is None else {"logprobs": told}
            pieces.append({"delta": {name: part}, **told_here, "finish_reason": None})
    for i, call in enumerate(calls or ()):
        pieces.append({"delta": {"tool_calls": [{**call, "index": i}]}, **silent, "finish_reason": None})
    others = {n: v for n, v in choice.items() if n not in ("index", "message", "logprobs", "delta")}
    told_last: Document = {"logprobs": logprobs} if "logprobs" in choice else {}
    pieces.append({"delta": {}, **told_last, **others})
    return pieces


def _spread(text: Any, logprobs: Document, name: str) -> Sequence[tuple[Any, Document]]:
    """The text in pieces, each with the probabilities of its tokens: in one piece where they do not spell it alone."""
    weighed = logprobs.get(name)
    tokens = [t.get("token") if isinstance(t, dict) else None for t in weighed] if isinstance(weighed, list) else []
    others = {n: v for n, v in logprobs.items() if n != name}
    spelled = [token for token in tokens if isinstance(token, str)]
    if any(v is not None for v in others.values()) or len(spelled) != len(tokens) or "".join(spelled) != text:
        return [(text, logprobs)]
    pairs = list(zip(spelled, weighed or (), strict=True))
    told = [("".join(t for t, _ in group), {**logprobs, name: [w for _, w in group]}) for group in grouped(pairs)]
    return told or [(text, logprobs)]


def _text_pieces(choice: Document) -> list[Document]:
    logprobs = choice.get("logprobs")
    silent: Document = {"logprobs": None} if "logprobs" in choice else {}
    text = choice.get("text") or ""
    parts = [text] if logprobs is not None else split_text(text)
    told: Document = {"logprobs": logprobs} if "logprobs" in choice else {}
    pieces: list[Document] = [{"text": part, **told, "finish_reason": None} for part in parts]
    others = {n: v for n, v in choice.items() if n not in ("index", "text", "logprobs")}
    return [*pieces, {"text": "", **silent, **others}]
