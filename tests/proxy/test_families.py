"""``GET /admin/prefixes``: what is known of the families of prompts."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from cacheproxy.engine.families import Families
from cacheproxy.http import prefixes
from tests.core.heads import head, prose
from tests.engine.fakes import Notes


@pytest.fixture
async def page():
    """A page of 120 families."""
    families = Families(Notes())
    for number in range(120):
        families.sent(b"scope", "m", head(prose(number, 9)), ())
    app = web.Application()
    app.router.add_routes(prefixes.routes(families))
    async with TestClient(TestServer(app)) as client:
        yield client, families


@pytest.mark.parametrize(("query", "count"), [("", 100), ("?limit=1", 1), ("?limit=110", 110), ("?limit=1000", 120)])
async def test_rows_and_total(page, query, count):
    client, families = page
    answer = await client.get(f"/admin/prefixes{query}")
    told = await answer.json()
    assert answer.status == 200
    assert told == {"families": families.rows(count), "total": families.summary()}
    assert len(told["families"]) == count
    assert told["total"]["families"] == 120


@pytest.mark.parametrize(
    "limit", ["0", "1001", "-1", "", "x", "1.0", "+5", " 5", "1e2", "9" * 5000, "%D9%A3", "5&limit=6"]
)
async def test_a_wrong_limit_is_refused_in_the_usual_form(page, limit):
    client, _ = page
    answer = await client.get(f"/admin/prefixes?limit={limit}")
    assert answer.status == 400
    error = (await answer.json())["error"]
    assert (error["code"], error["type"], error["param"]) == ("invalid_request", "invalid_request_error", "limit")
    assert "1 to 1000" in error["message"]
