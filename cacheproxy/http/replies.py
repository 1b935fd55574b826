"""What the admin listener answers with: JSON, and errors in the OpenAI form."""

from typing import Any

import orjson
from aiohttp import web


def json_reply(value: Any, status: int = 200) -> web.Response:
    """`value` as JSON."""
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def error_reply(status: int, code: str, message: str, param: str | None = None) -> web.Response:
    """An error; `param` names what of the request is wrong."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return json_reply({"error": {"message": message, "type": kind, "param": param, "code": code}}, status)
