"""Where a stream is cut changes nothing: what is recorded, and what passes, is the same whole, byte by byte, and in
pieces cut inside characters, line ends and field names, in whatever legal way the backend writes."""

import json
import random
import zlib

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cacheproxy.core import usage
from cacheproxy.core.coding import Decoder
from cacheproxy.core.events import split
from cacheproxy.core.model import Answer, Endpoint, Form
from cacheproxy.core.outcome import Reason
from cacheproxy.core.recording import recorder
from tests.core import shapes, streams
from tests.core.streams import USAGE, Writer
from tests.examples import tries

TYPE = "text/event-stream"
STREAMED = sorted(streams.KINDS)
seeds = st.integers(0, 2**32)


def record(endpoint: Endpoint, cuts: list[bytes], choices: int = 1) -> tuple[Answer | Reason, int, bool]:
    """What is made of a stream in pieces, how many events were kept, and whether the end was seen."""
    taking = recorder(shapes.ask(stream=True, choices=choices, endpoint=endpoint), TYPE)
    for piece in cuts:
        taking.feed(piece)
    return taking.finish(), taking.events, taking.ended


def cuttings(raw: bytes, dice: random.Random) -> list[list[bytes]]:
    """Whole, byte by byte, and two ways between."""
    return [[raw], shapes.bytewise(raw), streams.cut(raw, dice), [b"", *streams.cut(raw, dice), b""]]


@pytest.mark.parametrize("endpoint", STREAMED)
@tries(60)
@given(streams.spoken, st.integers(1, 3), seeds)
def test_a_recording_is_the_same_however_the_stream_is_cut(endpoint, texts, choices, seed):
    """B23, B25: and it is what the backend said: every field of every event, in order, without comments."""
    dice = random.Random(seed)
    told = streams.documents(endpoint, dice, texts, choices)
    counted = endpoint is not Endpoint.RESPONSES and dice.random() < 0.5
    told += [streams.usage_of(endpoint)] if counted else []
    writer = Writer(dice).stream(told, done=endpoint is not Endpoint.RESPONSES or dice.random() < 0.5)
    for cuts in cuttings(writer.raw, dice):
        answer, events, ended = record(endpoint, cuts, choices)
        assert isinstance(answer, Answer), answer
        assert (answer.form, answer.body) == (Form.EVENTS, writer.stored)
        assert events == sum(bool(block.lines) for block in writer.blocks)
        assert (ended, answer.has_usage) == (True, counted or endpoint is Endpoint.RESPONSES)
        assert answer.tokens == ((3, 4) if answer.has_usage else (0, 0))
        assert answer == record(endpoint, [writer.raw], choices)[0]


@pytest.mark.parametrize("endpoint", STREAMED)
@tries(60)
@given(streams.spoken, seeds)
def test_a_refusal_is_the_same_however_the_stream_is_cut(endpoint, texts, seed):
    """B15: streams with bytes lost, doubled or broken have one reason each, or none in every cutting."""
    dice = random.Random(seed)
    raw = Writer(dice).stream(streams.documents(endpoint, dice, texts), done=True).raw
    at, end = sorted(dice.choices(range(len(raw) + 1), k=2))
    junk = dice.choice(
        [b"", b"\n", b"\r", b"\n\n", b"{", b"\xff", b"data: x\n\n", b"event: error\n", b"data: [DONE]\n\n"]
    )
    broken = raw[:at] + junk + raw[min(end, at + dice.choice([0, 1, 3, 10**6])) :]
    found = [record(endpoint, cuts) for cuts in cuttings(broken, dice)]
    event(str(found[0][0].word if isinstance(found[0][0], Reason) else "kept"))
    assert found == [found[0]] * len(found)


def sieved(cuts: list[bytes]) -> bytes:
    sieve = usage.Filter()
    return b"".join(map(sieve.feed, cuts)) + sieve.rest


@pytest.mark.parametrize("endpoint", [Endpoint.CHAT, Endpoint.COMPLETIONS])
@tries(80)
@given(streams.spoken, seeds)
def test_what_passes_the_sieve_is_the_stream_without_its_usage(endpoint, texts, seed):
    """B20, B25: byte for byte, wherever the usage stands and however lines end."""
    dice = random.Random(seed)
    told = streams.documents(endpoint, dice, texts)
    for _ in range(dice.randrange(3)):
        told.insert(dice.randint(0, len(told)), streams.usage_of(endpoint))
    writer = Writer(dice).stream(told)
    kept = b"".join(block.raw for block in writer.blocks if not (block.document and block.document.get("usage")))
    for cuts in cuttings(writer.raw, dice):
        assert sieved(cuts) == kept


@pytest.mark.parametrize("endpoint", [Endpoint.CHAT, Endpoint.COMPLETIONS])
@tries(60)
@given(streams.spoken, st.booleans(), seeds)
def test_a_null_usage_is_taken_out_the_same_way_in_every_cutting(endpoint, texts, plain, seed):
    """Every other byte of an event with one line of data stays; of one with several, what it says."""
    dice = random.Random(seed)
    told = streams.documents(endpoint, dice, texts)
    bare = [dict(document) for document in told]
    for document in told:
        members = [*document.items()]
        members.insert(dice.randint(0, len(members)), ("usage", None))
        document.clear()
        document.update(members)
    writer = Writer(dice, plain=plain).stream(told)
    outs = {sieved(cuts) for cuts in cuttings(writer.raw, dice)}
    assert len(outs) == 1
    found = [e for e in split(outs.pop()) if e.lines]
    wanted = [block for block in writer.blocks if block.lines]
    assert [json.loads(e.data) for e in found[:-1]] == bare
    for each, block in zip(found, wanted, strict=True):
        others = [line for line in block.lines if not line.startswith(b"data:")]
        assert [line for line in each.lines if not line.startswith(b"data:")] == others


@pytest.mark.parametrize("bits", [31, 15, -15])
@tries(60)
@given(streams.spoken, seeds)
def test_a_packed_stream_is_recorded_the_same_however_it_is_cut(bits, texts, seed):
    """gzip, deflate and bare deflate, cut inside their own frames as well."""
    dice = random.Random(seed)
    writer = Writer(dice).stream(streams.documents(Endpoint.CHAT, dice, texts))
    packer = zlib.compressobj(wbits=bits)
    packed = b"".join(
        packer.compress(block.raw) + (packer.flush(zlib.Z_SYNC_FLUSH) if dice.random() < 0.5 else b"")
        for block in writer.blocks
    ) + packer.flush()  # fmt: skip
    for cuts in cuttings(packed, dice):
        decoder = Decoder([b"gzip" if bits == 31 else b"deflate"], 2**20)
        answer, *_ = record(Endpoint.CHAT, [decoder.feed(piece) for piece in cuts])
        assert decoder.whole
        assert isinstance(answer, Answer)
        assert answer.body == writer.stored


@pytest.mark.parametrize("endpoint", STREAMED)
def test_an_event_of_five_mebibytes_is_the_same_in_hundreds_of_pieces(endpoint):
    """B62: in one line and in thousands of lines of data, letters of every width."""
    dice = random.Random(5)
    texts = ["é漢😀\r\n data: " * (5 * 2**20 // 20), *["x" * 100] * 50]
    writer = Writer(dice).stream(streams.documents(endpoint, dice, texts), done=True)
    lines = [b"data:%b" % part for part in json.dumps({"a": [1] * 200_000}, indent=0).encode().split(b"\n")]
    comment = streams.Block(b"\r\n".join([b"id: 9", b": long", *lines]) + b"\r\n\r\n", (b"id: 9", *lines))
    writer.blocks.insert(1, comment)
    assert len(writer.raw) > 5 * 2**20
    for _ in range(2):
        cuts = streams.cut(writer.raw, dice, 400)
        assert len(cuts) > 5
        answer, *_ = record(endpoint, cuts)
        assert isinstance(answer, Answer), answer
        assert answer.body == writer.stored
        assert sieved(cuts) == writer.raw
    assert USAGE["total_tokens"] == sum(answer.tokens) or not answer.has_usage
