"""The counts of a prompt, read off a body as it passes: whatever its form, its size and its cuts."""

import json
import random

import orjson
import pytest

from cacheproxy.core import coding
from cacheproxy.core.model import Form
from cacheproxy.engine.meter import KEPT, MOST_UNPACKED, TRIES, Counts, Meter, meter

OPENAI = {
    "prompt_tokens": 2020,
    "completion_tokens": 4,
    "total_tokens": 2024,
    "prompt_tokens_details": {"cached_tokens": 2000},
}
RESPONSES = {"input_tokens": 90, "input_tokens_details": {"cached_tokens": 64}, "output_tokens": 3, "total_tokens": 93}
DEEPSEEK = {"prompt_tokens": 70, "completion_tokens": 1, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 6}
SILENT = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
LLAMA = {"cache_n": 236, "prompt_n": 14, "predicted_n": 4, "prompt_ms": 12.5}
LYING = '"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":9}}'


def completion(text: str = "Hello.", **fields) -> dict:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], **fields}


def chunk(text: str = "Hello.", **fields) -> dict:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **fields}


def stream(*documents, done: bool = True, end: bytes = b"\n\n") -> bytes:
    body = b"".join(b"data: " + orjson.dumps(d) + end for d in documents)
    return body + (b"data: [DONE]" + end if done else b"")


def response(said: str = "Hello.", **fields) -> dict:
    part = {"type": "message", "content": [{"type": "output_text", "text": said}]}
    return {"id": "r", "object": "response", "status": "completed", "output": [part], **fields}


def read(body: bytes, form: Form, pieces: list[bytes] | None = None) -> Counts | None:
    taking = Meter(form)
    for piece in pieces if pieces is not None else [body]:
        taking.feed(piece)
    return taking.counts()


def everywhere(body: bytes, form: Form) -> Counts | None:
    """The counts of `body`, which are the same whole, bytewise, and cut at random."""
    dice = random.Random(len(body))
    whole = read(body, form)
    ways = [[body[i : i + 1] for i in range(len(body))]]
    for _ in range(8):
        places = sorted(dice.sample(range(len(body)), min(len(body) - 1, 12)))
        ways.append([body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)])
    assert {read(body, form, pieces) for pieces in ways} == {whole}
    return whole


FORMS = [
    ("openai", {"usage": OPENAI}, Counts(2020, 2000, 4)),
    ("nothing cached", {"usage": {**OPENAI, "prompt_tokens_details": {"cached_tokens": 0}}}, Counts(2020, 0, 4)),
    ("deepseek", {"usage": DEEPSEEK}, Counts(70, 64, 1)),
    ("silent", {"usage": SILENT}, Counts(5, None, 2)),
    ("details without it", {"usage": {**SILENT, "prompt_tokens_details": {"audio_tokens": 0}}}, Counts(5, None, 2)),
    ("details are null", {"usage": {**SILENT, "prompt_tokens_details": None}}, Counts(5, None, 2)),
    ("llama.cpp", {"usage": SILENT | {"prompt_tokens": 250}, "timings": LLAMA}, Counts(250, 236, 2)),
    ("timings alone", {"timings": LLAMA}, Counts(250, 236, 4)),
    ("timings first", {"timings": LLAMA, "usage": OPENAI}, Counts(2020, 2000, 4)),
    ("details go before timings", {"usage": OPENAI, "timings": LLAMA}, Counts(2020, 2000, 4)),
    ("more cached than there was", {"usage": {**DEEPSEEK, "prompt_cache_hit_tokens": 99}}, Counts(70, 70, 1)),
    ("no usage", {}, None),
    ("usage is null", {"usage": None}, None),
    ("usage is empty", {"usage": {}}, None),
    ("no prompt", {"usage": {"prompt_tokens": 0, "prompt_tokens_details": {"cached_tokens": 0}}}, None),
    ("no object", {"usage": [OPENAI]}, None),
    ("junk", {"usage": {"prompt_tokens": "10", "prompt_tokens_details": {"cached_tokens": "9"}}}, None),
    ("negative", {"usage": {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": -1}}}, Counts(10, None)),
    ("true is no count", {"usage": {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": True}}}, Counts(10, None)),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "expected"), [f[1:] for f in FORMS], ids=[f[0] for f in FORMS])
def test_what_backends_say(fields, expected):
    for body in (orjson.dumps(completion(**fields)), json.dumps(completion(**fields), indent=2).encode()):
        assert everywhere(body, Form.JSON) == expected
    last = {**chunk(), "choices": [], **fields}
    for body in (
        stream(chunk(), last), stream(chunk(), last, done=False), stream(chunk(), last, end=b"\r\n\r\n"),
        stream(chunk(), last)[:-2], stream(chunk(), last, done=False)[:-2], b": ping\n\n" + stream(chunk(), last) + b": ping\n\n",
    ):  # fmt: skip
        assert everywhere(body, Form.EVENTS) == expected


def test_what_the_responses_operation_says():
    document = response(usage=RESPONSES, user=None, metadata={})
    assert everywhere(orjson.dumps(document), Form.JSON) == Counts(90, 64, 3)
    events = [
        {"type": "response.created", "response": response(usage=None)},
        {"type": "response.output_text.delta", "delta": LYING},
        {"type": "response.completed", "sequence_number": 3, "response": document},
    ]
    body = b"".join(b"event: %b\ndata: %b\n\n" % (e["type"].encode(), orjson.dumps(e)) for e in events)
    assert everywhere(body, Form.EVENTS) == Counts(90, 64, 3)


@pytest.mark.parametrize("size", [10, KEPT - 300, KEPT, 2 * KEPT, 5 * KEPT + 7])
def test_the_size_of_the_answer_does_not_matter(size):
    """What stands before the usage need not be held; one long document is read from its usage on."""
    text = 'é\n"\\ ' * (size // 5)
    sent = completion(text, created=1, usage=OPENAI, timings=LLAMA, system_fingerprint="x")
    assert read(orjson.dumps(sent), Form.JSON) == Counts(2020, 2000, 4)
    assert read(json.dumps(sent, indent=1).encode(), Form.JSON) == Counts(2020, 2000, 4)
    assert read(orjson.dumps(response(text, usage=RESPONSES, metadata={})), Form.JSON) == Counts(90, 64, 3)
    assert read(stream(*[chunk(text[i : i + 9]) for i in range(0, len(text), 9)], {"choices": [], "usage": OPENAI}),
                Form.EVENTS) == Counts(2020, 2000, 4)  # fmt: skip
    done = {
        "type": "response.completed",
        "response": response(text, usage=RESPONSES, metadata={}),
        "sequence_number": 1,
    }
    for tail in (b"", b"data: [DONE]\n\n", b": ping\n\n"):
        assert read(b"event: response.completed\ndata: %b\n\n%b" % (orjson.dumps(done), tail), Form.EVENTS) == Counts(
            90, 64, 3
        )


def test_cuts_do_not_matter_in_a_long_answer():
    body = orjson.dumps(completion('\\"é' * KEPT, usage=OPENAI, system_fingerprint="x" * 100))
    dice = random.Random(5)
    for step in (1, 7, 4096, KEPT - 1, KEPT, KEPT + 1, 2 * KEPT + 1, len(body) - 1):
        assert read(body, Form.JSON, [body[i : i + step] for i in range(0, len(body), step)]) == Counts(
            2020, 2000, 4
        ), step
    for _ in range(40):
        places = sorted(dice.sample(range(len(body)), 9))
        assert read(body, Form.JSON, [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)])


@pytest.mark.parametrize("form", [Form.JSON, Form.EVENTS])
def test_the_usage_is_found_in_as_much_of_the_end_however_it_is_cut(form):
    def made(after: int) -> bytes:
        document = orjson.dumps({"before": " " * 3 * KEPT, "usage": OPENAI, "after": " " * after})
        return document if form is Form.JSON else b"data: " + document + b"\n\n"

    most = KEPT - len(made(0)) + made(0).index(b'"usage"')
    for after, expected in ((most // 2, Counts(2020, 2000, 4)), (most, Counts(2020, 2000, 4)), (most + 1, None)):
        body = made(after)
        for step in (len(body), 2 * KEPT, KEPT + 1, KEPT, 1000, 1):
            assert read(body, form, [body[i : i + step] for i in range(0, len(body), step)]) == expected, (after, step)


def test_no_more_than_the_end_is_held():
    taking = Meter(Form.JSON)
    for _ in range(200):
        taking.feed(b"x" * 5000)
        assert len(taking._end) <= 2 * KEPT
    assert repr(taking) == f"<Meter {len(taking._end)} bytes after others>"
    taking.feed(b"x" * 10 * KEPT)
    assert len(taking._end) == KEPT


LIES = [
    LYING,
    "{" + LYING + "}",
    "x," + LYING,
    '"' + LYING,
    "\\" + LYING,
    '\\"' + LYING + "}}]}",
    "usage",
    '"usage":',
    "\n" + LYING,
]


@pytest.mark.parametrize("length", [0, KEPT])
@pytest.mark.parametrize("lie", LIES)
def test_what_the_model_writes_is_not_counted(lie, length):
    """A usage in the model's own text is inside a string."""
    text = " " * length + lie
    arguments = {"tool_calls": [{"function": {"name": "f", "arguments": lie}}]}
    for fields, expected in (({}, None), ({"usage": OPENAI}, Counts(2020, 2000, 4))):
        document = completion(text, **fields)
        document["choices"][0]["message"].update(arguments)
        body = orjson.dumps(document)
        assert read(body, Form.JSON) == expected
        for at in range(max(1, len(body) - 400), len(body)):
            assert read(body, Form.JSON, [body[:at], body[at:]]) == expected
        assert read(stream(chunk(text), {**chunk(lie), **fields}), Form.EVENTS) == expected
        # The text last, where the end of the body is looked at.
        last = {"x": text, **fields, "y": lie}
        assert read(orjson.dumps(last), Form.JSON) == expected
        assert read(stream(last), Form.EVENTS) == expected


@pytest.mark.parametrize("length", [0, KEPT])
def test_what_the_caller_said_and_the_backend_repeats_is_not_counted(length):
    """The Responses API repeats tools and metadata, whatever is in them, before and after the usage."""
    lie = {"usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 9}}}
    echoes = {
        "tools": [{"type": "function", "parameters": {"properties": lie, **lie}}],
        "metadata": lie,
        "text": {"format": lie},
    }
    text = " " * length
    for sent, expected in (
        (response(text, **echoes, usage=RESPONSES), Counts(90, 64, 3)), (response(text, usage=RESPONSES, **echoes), Counts(90, 64, 3)),
        (response(text, **echoes), None), (response(text, **echoes, usage=None), None),
    ):  # fmt: skip
        assert read(orjson.dumps(sent), Form.JSON) == expected
        assert read(stream({"type": "response.completed", "response": sent}), Form.EVENTS) == expected
        assert read(stream({"response": sent, "type": "response.completed"}, done=False), Form.EVENTS) == expected


@pytest.mark.parametrize("length", [0, KEPT])
@pytest.mark.parametrize("form", [Form.JSON, Form.EVENTS])
def test_other_members_are_no_usage(form, length):
    """Names that end like it, and in an answer that is no event a member that is called as the response in one."""
    text = " " * length
    lie = {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 9}}
    others = [{'a"usage': lie}, {"my_usage": lie}, {"Usage": lie}, {'\\"usage': lie}]
    for other in [*others, {"response": {"usage": lie}}] if form is Form.JSON else others:
        for fields, expected in (({}, None), ({"usage": OPENAI}, Counts(2020, 2000, 4))):
            for document in (completion(text, **other, **fields), completion(text, **fields, **other)):
                assert read(orjson.dumps(document) if form is Form.JSON else stream(document), form) == expected


@pytest.mark.parametrize("length", [0, KEPT])
def test_an_answer_that_is_broken_off_says_what_it_had_said(length):
    body = orjson.dumps(completion(" " * length, usage=OPENAI, id="x"))
    assert read(body, Form.JSON) == Counts(2020, 2000, 4)
    assert {read(body[:-cut], Form.JSON) for cut in range(1, 200)} == {None}
    told = stream({**chunk(" " * length), "usage": OPENAI}, done=False)
    after = stream(chunk(), done=False)
    assert {read(told + after[:cut], Form.EVENTS) for cut in range(len(after))} == {Counts(2020, 2000, 4)}
    assert {read(told[:-cut], Form.EVENTS) for cut in range(3, 200)} == {None}


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r", b"\r\n\n"])
def test_the_last_usage_of_a_stream_counts(end):
    """Some tell a usage with every chunk, and what was cached only at the end."""
    body = stream(*[{**chunk(), "usage": SILENT}] * 3, {"choices": [], "usage": OPENAI}, end=end)
    assert everywhere(body, Form.EVENTS) == Counts(2020, 2000, 4)
    assert everywhere(stream({"usage": OPENAI}, {**chunk(), "usage": None}, end=end), Form.EVENTS) == Counts(
        2020, 2000, 4
    )


def test_the_work_is_bounded():
    """However many places look like a beginning, only the last few are tried."""
    many = {"x": [{"usage": 1}] * 3, "usage": OPENAI}
    assert len(many["x"]) < TRIES
    text = " " * KEPT
    assert read(orjson.dumps({"t": text, **many}), Form.JSON) == Counts(2020, 2000, 4)
    deep = b'{"t":"' + b" " * KEPT + b'","x":' + b'[{"usage":' * 1500
    assert read(deep, Form.JSON) is None
    for events, expected in ((TRIES - 1, Counts(2020, 2000, 4)), (TRIES, None)):
        assert read(stream({"usage": OPENAI}, *[{"usage": None}] * events), Form.EVENTS) == expected


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_a_packed_body_is_unpacked(name):
    fields = ((b"Content-Encoding", name.encode()),)
    body = orjson.dumps(completion("Hello. " * 9000, usage=OPENAI))
    packed = coding.pack(body, name.encode())
    for step in (1, 100, len(packed)):
        taking = meter(fields, Form.JSON)
        for i in range(0, len(packed), step):
            taking.feed(packed[i : i + step])
        assert taking.counts() == Counts(2020, 2000, 4)


def test_a_body_that_cannot_be_unpacked_counts_nothing():
    assert meter(((b"Content-Encoding", b"made-up"),), Form.JSON) is None
    good = orjson.dumps(completion(usage=OPENAI))
    taking = meter(((b"Content-Encoding", b"gzip"),), Form.JSON)
    taking.feed(coding.pack(good, b"gzip"))
    taking.feed(b"junk behind the end")
    taking.feed(good)
    assert taking.counts() is None
    huge = meter(((b"Content-Encoding", b"gzip"),), Form.JSON)
    huge.feed(coding.pack(b" " * (MOST_UNPACKED + 1) + good, b"gzip"))
    assert huge.counts() is None


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b'"usage":', b'{"usage":', b"data: ", b"data: {}\n\n", b"[]", b"1",
                                  b'data: "usage":{"prompt_tokens":1}\n\n', b'{"usage":{"prompt_tokens":NaN}}',
                                  b'{"usage":{"prompt_tokens":1e3}}', b'{"usage":{"prompt_tokens":99999999999999999999}}'])  # fmt: skip
@pytest.mark.parametrize("form", [Form.JSON, Form.EVENTS])
def test_junk_counts_nothing(body, form):
    assert read(body, form) is None
    assert read(b" " * 2 * KEPT + body, form) is None


def test_what_is_no_document_counts_nothing():
    """Where all of it is there, its beginning must be right too."""
    told = b',"usage":' + orjson.dumps(OPENAI) + b"}"
    for before in (b"", b"x", b"{", b'{"a"', b'{"a":1 "b":2', b"[1"):
        assert read(before + told, Form.JSON) is None
        assert read(b"data: " + before + told + b"\n\n", Form.EVENTS) is None
    assert read(b'{"a":1' + told, Form.JSON) == Counts(2020, 2000, 4)
