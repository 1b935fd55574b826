"""Heads of stored answers: whatever the backend wrote into its own, a hit can be given."""

import json

import pytest

from tests.fakes.backend import completion


@pytest.mark.parametrize("parameter", [b"charset=utf-8", b'x="caf\xe9"', "x=\u4f60".encode()])
async def test_an_odd_content_type_costs_no_answer(client, backend, parameter):
    """A parameter that is no ASCII text: the repeat is answered, from the cache or by the backend, never by an error."""
    body = json.dumps(completion()).encode()

    async def script(exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json; %b\r\n" % parameter)
        await exchange.send(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    backend.script = script
    for _ in range(3):
        answer = await client.chat()
        assert (answer.status, answer.text) == (200, "Hello.")
