"""Everything that an admin call changes is written down: who, what, how many, and what came of it; no word of a prompt,
and no token."""

import hashlib
import json
import logging
import stat

import pytest

from cacheproxy.http.calls import CALLS, may_read
from tests.proxy.doors import FULL, READ, Caller, filled
from tests.rig import Client

PROMPT = {"model": "m", "messages": [{"role": "user", "content": "SECRET-7"}]}
FINGERPRINT = f"token:{hashlib.sha256(FULL.encode()).hexdigest()[:12]}"


@pytest.fixture
def heard(caplog):
    """The lines so far."""
    caplog.set_level(logging.INFO, "cacheproxy.audit")
    return lambda: [json.loads(r.message) for r in caplog.records if r.name == "cacheproxy.audit"]


async def test_a_line_says_who_what_and_how_many(proxy, client, session, heard, caplog):
    admin = Caller(session, proxy.admin)
    await client.chat(PROMPT, X_Cache_Tags="faq")
    await admin.post("/admin/purge", {"selector": {"tags": "faq"}, "mode": "soft"})
    (line,) = heard()
    assert line == {
        "time": line["time"], "who": "loopback", "peer": "127.0.0.1", "call": "POST /admin/purge", "about": {},
        "asked": {"selector": {"tags": "faq"}, "mode": "soft"}, "counts": {"matched": 1, "purged": 1, "epoch": 1},
        "status": 200,
    }  # fmt: skip
    assert "SECRET-7" not in caplog.text


CHANGES = [
    ("PUT", "/admin/kb/a%2Fb%20c", {"version": "v2", "changed_documents": ["d"]}, {"name": "a/b c"},
     {"version": "v2", "changed_documents": ["d"]}, 200),
    ("DELETE", f"/admin/entries/{'0' * 32}", None, {"id": "0" * 32}, {}, 404),
    ("POST", "/admin/feedback", {"entry_id": "x", "verdict": "wrong", "request": PROMPT}, {},
     {"entry_id": "x", "verdict": "wrong"}, 404),
    ("POST", "/admin/events", {"specversion": "1.0", "type": "kb.version.published", "source": "s", "id": "1",
     "subject": "k", "data": {"version": "2", "prompt": "SECRET-7"}}, {},
     {"type": "kb.version.published", "source": "s", "id": "1", "subject": "k", "data": {"version": "2"}}, 200),
    ("POST", "/admin/purge", {"selector": {"all": True}, "prompt": "SECRET-7"}, {}, {"selector": {"all": True}}, 400),
    ("POST", "/admin/drain", None, {}, {}, 202),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "document", "about", "asked", "status"), CHANGES)
async def test_every_change_is_written_down(
    start, session, heard, caplog, method, path, document, about, asked, status
):
    proxy = await start(admin__token=FULL)
    assert (await Caller(session, proxy.admin, FULL).call(method, path, document))[0] == status
    (line,) = heard()
    assert (line["who"], line["about"], line["asked"], line["status"]) == (FINGERPRINT, about, asked, status)
    assert ("code" in line) == (status >= 400)
    assert not any(word in caplog.text for word in ("SECRET-7", FULL))


async def test_of_each_call_that_changes_something_there_is_a_line(start, session, heard):
    proxy = await start(admin__token=FULL)
    admin = Caller(session, proxy.admin, FULL)
    for method, path in CALLS:
        await admin.call(method, filled(path))
    assert [line["call"] for line in heard()] == [f"{m} {p}" for m, p in CALLS if not may_read(m, p)]


async def test_what_is_refused_at_the_door_changes_nothing_and_is_no_line(start, session, heard):
    proxy = await start(admin__token=FULL, admin__read_token=READ)
    for token in (None, "wrong-token", READ):
        await Caller(session, proxy.admin, token).post("/admin/drain")
    assert heard() == []


async def test_a_line_has_no_end_and_no_line_in_it(proxy, session, heard, caplog):
    admin = Caller(session, proxy.admin)
    name = "x\n2026 forged\r\u2028\x00" + "y" * 500
    await admin.post("/admin/purge", {"selector": {"tags": [name] * 500}})
    (line,) = heard()
    assert len(json.dumps(line)) < 50_000
    assert line["asked"]["selector"]["tags"][0].startswith("x\n2026 forged\r")
    assert line["asked"]["selector"]["tags"][-1] == "… 450 more"
    (written,) = [r.message for r in caplog.records if r.name == "cacheproxy.audit"]
    assert len(written.split("\n")) == 1


async def test_the_file_has_the_same_lines_for_its_owner_alone(start, session, heard, tmp_path):
    file = tmp_path / "audit.jsonl"
    proxy = await start(admin__audit_file=str(file))
    admin = Caller(session, proxy.admin)
    for number in range(3):
        await admin.call("DELETE", f"/admin/entries/{number}")
    await proxy.running._admin.cleanup()
    assert [json.loads(line) for line in file.read_text().splitlines()] == heard()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_file_that_takes_nothing_keeps_no_call_from_its_end(start, session, heard, tmp_path, caplog):
    proxy = await start(admin__audit_file=str(tmp_path / "not" / "there"))
    assert (await Caller(session, proxy.admin).post("/admin/purge", {"selector": {"model": "m"}}))[0] == 200
    assert len(heard()) == 1


async def test_a_call_that_fails_is_written_down_too(proxy, session, heard, monkeypatch):
    def fail(*_args):
        raise RuntimeError("SECRET-7")

    monkeypatch.setattr(type(proxy.house.purge), "carry_out", fail)
    client = Client(proxy.base, session)
    await client.chat(PROMPT)
    assert (await Caller(session, proxy.admin).post("/admin/purge", {"selector": {"model": "m"}}))[0] == 500
    (line,) = heard()
    assert (line["status"], line["code"]) == (500, "internal_error")
