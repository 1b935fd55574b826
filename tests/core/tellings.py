"""A document first, then one of the many streams in which a backend may tell it: what the conversions are held to.

The document is the truth. Which way it is told, the dice say: how texts and arguments are cut, which choice or call
speaks next, what is repeated, what comes late, what stands beside it that means nothing.
"""

import random
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]

_WORDS = ["Hel", "lo", " ", "\n", "漢字", "é", '"id":"x"', "[DONE]", "data: ", "\u2028", "😀", "{", "\\"]
_OF_ALL = {"system_fingerprint": "fp_1", "service_tier": "default", "provider": "P", "x_top": {"a": [1, None, 2.5]}}
_OF_CHOICE = {"stop_reason": 7, "matched_stop": "</s>", "content_filter_results": {"hate": {"filtered": False}}}


@dataclass
class Teller:
    """Makes documents and tells them. `dice`: decides everything."""

    dice: random.Random

    def text(self, least: int = 0) -> str:
        return "".join(self.dice.choices(_WORDS, k=self.dice.randint(least, 8)))

    def maybe(self, likely: float = 0.4) -> bool:
        return self.dice.random() < likely

    def document(self) -> Document:
        """A chat completion of one to three choices."""
        choices = [self._choice(i) for i in range(self.dice.randint(1, 3))]
        weighed = sum(len(c["logprobs"]["content"]) for c in choices if "logprobs" in c)
        return {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": "m", "choices": choices,
            **{name: value for name, value in _OF_ALL.items() if self.maybe()},
            "usage": {
                "prompt_tokens": 3, "completion_tokens": weighed or 9, "total_tokens": 12,
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
        }  # fmt: skip

    def _choice(self, index: int) -> Document:
        message: Document = {"role": "assistant", "content": self.text(1)}
        for name in ("reasoning_content", "reasoning", "refusal"):
            if self.maybe():
                message[name] = self.text(1)
        if self.maybe():
            message["annotations"] = [{"type": "url_citation", "at": n} for n in range(self.dice.randint(1, 3))]
        if self.maybe():
            message["reasoning_details"] = [self._detail(n) for n in range(self.dice.randint(1, 2))]
        if self.maybe(0.3):
            message["x_y"] = self.dice.choice(["text", 7, True, {"a": ["b", {"index": 0}]}, [1, [2]], 0, 1e-7])
        calls = self.maybe()
        if calls:
            message["tool_calls"] = [self._call(n) for n in range(self.dice.randint(1, 3))]
        choice = {"index": index, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        choice |= {name: value for name, value in _OF_CHOICE.items() if self.maybe(0.3)}
        if self.maybe(0.3):
            tokens = [self.text(1) for _ in range(self.dice.randint(2, 5))]
            choice["logprobs"] = {"content": [{"token": t, "logprob": -0.5, "top_logprobs": []} for t in tokens]}
        if self.maybe(0.2):
            choice["token_ids"] = self.dice.choices(range(9), k=3)
        return choice

    def _detail(self, number: int) -> Document:
        told = {"type": "reasoning.text", "text": self.text(1), "format": "f-v1", "index": number}
        return {**told, "signature": "c2ln"} if self.maybe() else told

    def _call(self, number: int) -> Document:
        kind, spoken = self.dice.choice([("function", "arguments"), ("custom", "input")])
        told = {"id": f"call_{number}", "type": kind, kind: {"name": f"f_{number}", spoken: self.text(1)}}
        return {**told, "extra_content": {"google": {"thought_signature": "x"}}} if self.maybe(0.2) else told

    def chunks(self, document: Document) -> list[Document]:
        """One way of telling `document`, usage included."""
        pieces = self._mixed([self._pieces(choice) for choice in document["choices"]])
        head = {name: document[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
        told = [{**head, "choices": [piece]} for piece in pieces]
        if self.maybe(0.2):
            told.insert(0, {"id": "", "object": "", "created": 0, "model": "", "choices": []})
        for name in document.keys() & _OF_ALL.keys():
            first = self.dice.randrange(len(told))
            last = self.dice.choice([first, len(told) - 1])  # once, or from some chunk on
            for number, chunk in enumerate(told):
                if first <= number <= last:
                    chunk[name] = document[name]
                elif self.maybe(0.3):
                    chunk[name] = None
        for chunk in told:
            noise = {"obfuscation": self.text(), "usage": None}
            chunk.update({name: value for name, value in noise.items() if self.maybe(0.2)})
        if self.maybe(0.7):
            return [*told, {**head, "choices": [], "usage": document["usage"]}]
        told[-1]["usage"] = document["usage"]
        return told

    def _mixed(self, tracks: list[list[Any]]) -> list[Any]:
        """Everything, each track in its order."""
        turns = [n for n, track in enumerate(tracks) for _ in track]
        self.dice.shuffle(turns)
        left = [iter(track) for track in tracks]
        return [next(left[n]) for n in turns]

    def _cut(self, text: str) -> list[str]:
        places = sorted(self.dice.choices(range(len(text) + 1), k=self.dice.randrange(5)))
        return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]

    def _pieces(self, choice: Document) -> list[Document]:
        message = choice["message"]
        texts = [n for n, v in message.items() if isinstance(v, str) and n not in ("role", "x_y")]
        tracks = [[{name: part} for part in self._cut(message[name])] for name in texts]
        tracks.append([{"annotations": [item]} for item in message.get("annotations", ())])
        tracks.append([{"reasoning_details": [d]} for d in self._detail_pieces(message.get("reasoning_details", ()))])
        tracks.append([{"x_y": message["x_y"]}] if "x_y" in message else [])
        tracks += self._call_tracks(message.get("tool_calls", ()))
        opening = {"role": "assistant", "content": self.dice.choice([None, ""]), "refusal": None}
        deltas = [opening, *self._mixed(tracks), *[{}] * self.dice.randrange(2)]
        pieces = [{"index": choice["index"], "delta": delta, "finish_reason": None} for delta in deltas]
        self._weigh(choice, pieces)
        pieces[-1]["finish_reason"] = choice["finish_reason"]
        for name in choice.keys() & _OF_CHOICE.keys():
            pieces[-1][name] = choice[name]
            pieces[0][name] = self.dice.choice([None, choice[name], {}])
        return pieces

    def _weigh(self, choice: Document, pieces: list[Document]) -> None:
        for at, told in self._spread(choice.get("logprobs", {}).get("content", ()), len(pieces)):
            pieces[at]["logprobs"] = {"content": told}
        for at, told in self._spread(choice.get("token_ids", ()), len(pieces)):
            pieces[at]["token_ids"] = told

    def _spread(self, things: Any, places: int) -> list[tuple[int, list[Any]]]:
        at = sorted(self.dice.choices(range(places), k=len(things)))
        return [(n, [t for t, m in zip(things, at, strict=True) if m == n]) for n in sorted(set(at))]

    def _detail_pieces(self, details: Any) -> list[Document]:
        told = []
        for detail in details:
            parts = self._cut(detail["text"])
            same = {n: detail[n] for n in ("type", "format", "index")}
            told += [{**same, "text": part} for part in parts]
            told[-1] |= {n: v for n, v in detail.items() if n == "signature"}
        return told

    def _call_tracks(self, calls: Any) -> list[list[Document]]:
        if calls and self.maybe(0.2):  # whole, and without an index
            return [[{"tool_calls": [call]} for call in calls]]
        return [[{"tool_calls": [piece]} for piece in self._call_pieces(n, call)] for n, call in enumerate(calls)]

    def _call_pieces(self, number: int, call: Document) -> list[Document]:
        kind = call["type"]
        spoken = "arguments" if kind == "function" else "input"
        parts = self._cut(call[kind][spoken])
        named = {"name": call[kind]["name"]}
        repeats = self.dice.choice([{}, {"id": call["id"], "type": kind}, {"type": kind}])
        again = named if "id" in repeats and self.maybe() else self.dice.choice([{}, {"name": None}, {"name": ""}])
        first = {"index": number, **call, kind: {**named, spoken: parts[0]}}
        return [first, *({"index": number, **repeats, kind: {**again, spoken: part}} for part in parts[1:])]
