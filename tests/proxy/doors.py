"""The calls of an admin listener, from its own router, so that none can be forgotten; and a way to make them."""

import re
from typing import Any

from aiohttp import web

from tests import rig

FULL, READ = "a-full-admin-token", "a-token-that-reads"


def routes(proxy: rig.InProcess) -> list[tuple[str, str]]:
    """Method and path of everything that the listener answers, HEAD aside."""
    app: web.Application = proxy.running._admin.app
    found = {(r.method, r.resource.canonical) for r in app.router.routes() if r.resource is not None}
    return sorted(pair for pair in found if pair[0] != "HEAD")


def filled(path: str) -> str:
    """A path with something in place of its parameters."""
    return re.sub(r"\{\w+\}", "0" * 32, path)


class Caller:
    """Makes admin calls."""

    def __init__(self, session, base: str, token: str | None = None) -> None:
        self._session, self._base = session, base
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def call(
        self, method: str, path: str, document: Any = None, *, data: bytes | None = None, **headers: str
    ) -> tuple[int, Any]:
        """The status, and the JSON of the reply, or its bytes."""
        sent = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        options = {"json": document} if document is not None else {"data": data}
        async with self._session.request(method, self._base + path, headers=sent, **options) as answer:
            body = await answer.read()
            is_json = answer.content_type == "application/json" and body
            return answer.status, await answer.json() if is_json else body

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        return await self.call("GET", path, **headers)

    async def post(self, path: str, document: Any = None, **headers: str) -> tuple[int, Any]:
        return await self.call("POST", path, document, **headers)
