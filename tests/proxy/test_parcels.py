"""What is stored is given out as lines and taken in elsewhere; nothing comes back by it that is not to be served."""

import asyncio
import base64
import gzip
import io
import json

import numpy as np
import pytest

from cacheproxy.core.model import Unfit
from cacheproxy.engine import export, intake, lessons
from cacheproxy.errors import Trouble
from tests.fakes.backend import chunk, completion, gives, streams
from tests.fakes.embedder import Chosen
from tests.proxy.doors import FULL, READ, Caller
from tests.proxy.schema import Schemas
from tests.rig import Client, until

ASKED = "How do I get a new password for my account?"
LIKE = "How can I get a new password for my account?"


def chosen(name: str = "chosen") -> Chosen:
    made = Chosen()
    made.identity = type(made).identity.__class__(name, "1", type(made).identity.dim)
    made.near(ASKED, 1.0)
    made.near(LIKE, 0.97)
    return made


@pytest.fixture
def secret(tmp_path) -> str:
    """The file of the secret that all proxies of a test have."""
    path = tmp_path / "secret"
    path.write_text("s" * 40)
    return str(path)


@pytest.fixture
def begin(start, session, secret):
    """Starts a proxy under that secret; the proxy, a caller of it, and one of its admin API."""

    async def begin(**values):
        proxy = await start(**{"store__secret_file": secret, **values})
        return proxy, Client(proxy.base, session), Caller(session, proxy.admin)

    return begin


async def exported(admin: Caller, query: str = "") -> list[bytes]:
    status, body = await admin.get(f"/admin/export{query}")
    assert status == 200, body
    return body.splitlines(keepends=True)


async def imported(admin: Caller, lines: list[bytes], *, force: bool = True) -> dict:
    body = io.BytesIO(b"".join(lines))
    status, told = await admin.call("POST", f"/admin/import?force={'yes' if force else 'no'}", data=body)
    assert status == 200, told
    return told


def counts(told: dict) -> dict[str, int]:
    """Those that are not 0."""
    return {name: n for name, n in told.items() if type(n) is int and n and name != "lines"}


@pytest.mark.parametrize("stream", [False, True])
async def test_what_was_exported_is_a_hit_elsewhere(begin, backend, stream):
    _, client, admin = await begin()
    said = streams(chunk({"role": "assistant", "content": "It says "}), chunk({"content": "é."}), chunk({}, "stop"))
    backend.script = said if stream else gives(completion("It says é."))
    asked = {"stream": stream, "X_Cache_Tags": "a, é", "X_Cache_KB": "kb%20é@v1", "X_Cache_Namespace": "n"}
    await client.chat(**asked)
    first = await client.chat(**asked)
    lines = await exported(admin)
    assert json.loads(lines[0])["about"] == 1 and json.loads(lines[-1]) == {"end": {"entries": 1, "questions": 0}}
    _, other, other_admin = await begin()
    told = await imported(other_admin, lines)
    assert (told["complete"], counts(told)) == (True, {"imported": 1})
    seen = len(backend.seen)
    second = await other.chat(**asked)
    assert (second.cache, second.text, second.get("x-cache-entry-id")) == (
        "HIT", first.text, first.get("x-cache-entry-id"),
    )  # fmt: skip
    assert len(backend.seen) == seen
    before, after = (await admin.get("/admin/entries"))[1], (await other_admin.get("/admin/entries"))[1]
    assert before == after


async def test_importing_again_changes_nothing(begin):
    _, client, admin = await begin()
    for seed in range(5):
        await client.chat(seed=seed)
    lines = await exported(admin)
    assert counts(await imported(admin, lines, force=False)) == {"present": 5}
    _, _, other = await begin()
    assert counts(await imported(other, lines)) == {"imported": 5}
    assert counts(await imported(other, [*lines[:-1], *lines[1:3], lines[-1]])) == {"present": 7}


SELECTED = [
    ("", 4), ("?kb=handbook", 1), ("?kb=handbook%402", 0), ("?tag=faq", 1), ("?model=special", 1), ("?namespace=ours", 1),
    ("?namespace=", 3), ("?tag=&kb=", 4), ("?model=special&tag=faq", 0),
]  # fmt: skip


@pytest.mark.parametrize(("query", "number"), SELECTED)
async def test_those_that_are_meant_are_exported(begin, monkeypatch, query, number):
    monkeypatch.setattr(export, "PAGE", 2)
    _, client, admin = await begin()
    for asked in (
        {"X_Cache_KB": "handbook@1"},
        {"X_Cache_Tags": "faq"},
        {"model": "special"},
        {"X_Cache_Namespace": "ours"},
    ):
        await client.chat(**asked)
    lines = await exported(admin, query)
    assert (len(lines) - 2, json.loads(lines[-1])["end"]["entries"]) == (number, number)


async def test_an_export_needs_a_full_token_and_that_answers_may_be_shown(start, session):
    proxy = await start(admin__token=FULL, admin__read_token=READ)
    status, told = await Caller(session, proxy.admin, READ).get("/admin/export")
    assert (status, told["error"]["code"]) == (403, "forbidden")
    async with session.head(proxy.admin + "/admin/export", headers={"Authorization": f"Bearer {READ}"}) as answer:
        assert answer.status == 405
    status, told = await Caller(session, proxy.admin, READ).post("/admin/import")
    assert status == 403
    assert (await Caller(session, proxy.admin, FULL).get("/admin/export"))[0] == 200
    hidden = await start(admin__show_answers=False)
    status, told = await Caller(session, hidden.admin).get("/admin/export")
    assert (status, told["error"]["code"]) == (403, "forbidden")
    assert "admin.show_answers" in told["error"]["message"]


async def test_an_export_is_written_down_and_says_whom_it_is_for(start, session, client, caplog):
    proxy = await start(admin__token=FULL)
    with caplog.at_level("INFO", "cacheproxy.audit"):
        async with session.get(f"{proxy.admin}/admin/export", headers={"Authorization": f"Bearer {FULL}"}) as answer:
            await answer.read()
            assert answer.headers["Cache-Control"] == "private, no-store"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
    (line,) = [json.loads(record.message) for record in caplog.records if record.name == "cacheproxy.audit"]
    assert (line["call"], line["status"]) == ("GET /admin/export", 200)


# --- what must not come back -----------------------------------------------------------------------------------------


PURGES = [
    {"selector": {"tags": "faq"}}, {"selector": {"all": True}, "confirm": "purge all"}, {"selector": {"model": "m"}},
    {"selector": {"older_than": 0}}, {"selector": {"tags": "faq"}, "mode": "soft"},
]  # fmt: skip


@pytest.mark.parametrize("document", PURGES, ids=json.dumps)
@pytest.mark.parametrize("force", [False, True])
async def test_what_was_purged_since_does_not_come_back(begin, document, force):
    """Once purged, never served: also not by an import of what was exported before."""
    _, client, admin = await begin()
    await client.chat(X_Cache_Tags="faq")
    lines = await exported(admin)
    await admin.post("/admin/purge", document)
    told = await imported(admin, lines, force=force)
    assert counts(told) == {"purged": 1}
    assert (await client.chat(X_Cache_Tags="faq", Cache_Control="only-if-cached")).status == 504


async def test_a_new_version_fells_what_was_exported_before_it(begin):
    _, client, admin = await begin()
    await client.chat(X_Cache_KB="faq")
    await client.chat(X_Cache_KB="faq@v1")
    lines = await exported(admin)
    await admin.call("PUT", "/admin/kb/faq", {"version": "v2"})
    assert counts(await imported(admin, lines)) == {"purged": 2}


async def test_another_version_than_the_current_one_is_not_imported(begin, clock):
    """The other proxy was told of it before the answers were asked for: no removal there means them."""
    _, _, other = await begin()
    await other.call("PUT", "/admin/kb/faq", {"version": "v2"})
    clock.time += 1000
    _, client, admin = await begin()
    await client.chat(X_Cache_KB="faq@v1", seed=1)
    await client.chat(X_Cache_KB="faq@v2", seed=2)
    await client.chat(X_Cache_KB="faq", seed=3)
    lines = await exported(admin)
    assert counts(await imported(other, lines)) == {"imported": 2, "other_version": 1}


async def test_what_is_older_than_the_record_is_left_out_unless_it_is_vouched_for(begin, clock):
    _, client, admin = await begin()
    await client.chat()
    lines = await exported(admin)
    clock.time += 1000
    _, _, other = await begin()
    told = await imported(other, lines, force=False)
    assert (told["complete"], counts(told)) == (True, {"unproven": 1})
    assert told["known_since"] == clock.time
    assert counts(await imported(other, lines)) == {"imported": 1}


async def test_a_removal_while_it_is_imported_is_heeded(begin, monkeypatch):
    """Counted after the record was read, and before the answer is put."""
    _, client, admin = await begin()
    await client.chat(X_Cache_Tags="faq")
    lines = await exported(admin)
    _, other, other_admin = await begin()
    get = intake.Shelf.get

    async def purged_first(shelf, key):
        await other_admin.post("/admin/purge", {"selector": {"tags": "faq"}})
        return await get(shelf, key)

    monkeypatch.setattr(intake.Shelf, "get", purged_first)
    assert counts(await imported(other_admin, lines)) == {"purged": 1}
    monkeypatch.undo()
    assert (await other.chat(X_Cache_Tags="faq", Cache_Control="only-if-cached")).status == 504


async def test_what_expired_is_not_imported_and_what_is_stale_is_stale(begin, clock):
    values = {"exact__ttl": 100, "exact__keep_stale": 1000}
    _, client, admin = await begin(**values)
    await client.chat()
    lines = await exported(admin)
    clock.time += 500
    _, stale, stale_admin = await begin(**values)
    assert counts(await imported(stale_admin, lines)) == {"imported": 1}
    assert (await stale.chat(Cache_Control="max-stale")).cache == "STALE"
    clock.time += 5000
    _, _, late = await begin(**values)
    assert counts(await imported(late, lines)) == {"expired": 1}
    assert len(await exported(admin)) == 2


async def test_a_lifetime_is_bounded_as_that_of_any_answer(begin, clock):
    _, client, admin = await begin()
    await client.chat(X_Cache_TTL="86400")
    lines = await exported(admin)
    _, _, other = await begin(exact__max_ttl=100, exact__ttl=50, exact__keep_stale=10)
    assert counts(await imported(other, lines)) == {"imported": 1}
    (row,) = (await other.get("/admin/entries"))[1]["entries"]
    assert (row["fresh_until"], row["expires_at"]) == (clock.time + 100, clock.time + 110)


async def test_what_comes_from_the_future_is_refused(begin, clock):
    _, client, admin = await begin()
    clock.time += 1000
    await client.chat()
    lines = await exported(admin)
    clock.time -= 1000
    _, _, other = await begin()
    told = await imported(other, lines)
    assert counts(told) == {"bad": 1} and "has not come" in told["bad_lines"][0]["why"]


async def test_a_younger_answer_is_not_replaced(begin, clock, backend):
    _, client, admin = await begin()
    await client.chat()
    lines = await exported(admin)
    clock.time += 10
    backend.script = gives(completion("the younger"))
    await client.chat(Cache_Control="no-cache")
    assert counts(await imported(admin, lines)) == {"older": 1}
    assert (await client.chat()).text == "the younger"
    younger = await exported(admin)
    _, other, other_admin = await begin()
    assert counts(await imported(other_admin, lines)) == {"imported": 1}
    assert counts(await imported(other_admin, younger)) == {"imported": 1}
    assert (await other.chat()).text == "the younger"


# --- files that are not what they should be --------------------------------------------------------------------------


@pytest.fixture
async def file(begin) -> list[bytes]:
    """An export of three answers."""
    _, client, admin = await begin()
    for seed in range(3):
        await client.chat(seed=seed)
    return await exported(admin)


async def refusal(admin: Caller, data: bytes, query: str = "") -> tuple[int, str]:
    status, told = await admin.call("POST", f"/admin/import{query}", data=data)
    return status, told["error"]["message"]


async def test_a_file_of_another_secret_is_refused(start, session, file, tmp_path):
    for number, path in enumerate([None, tmp_path / "other"]):
        if path is not None:
            path.write_text("o" * 40)
        other = await start(**({} if path is None else {"store__secret_file": str(path)}))
        admin = Caller(session, other.admin)
        status, said = await refusal(admin, b"".join(file), "?force=yes")
        assert status == 409 and "store.secret_file" in said, number
        assert len(await exported(admin)) == 2
    assert b"s" * 40 not in b"".join(file)


async def test_a_file_of_other_backends_is_refused(begin, file):
    _, _, other = await begin(store__realm="others")
    status, said = await refusal(other, b"".join(file))
    assert status == 409 and "store.realm" in said


NO_EXPORTS = [b"", b"\n\n", b"{}", b"null", b"[1]", b"\xff\xfe", b"{" * 5000, b'{"kind": "cacheproxy export"}']


@pytest.mark.parametrize("data", NO_EXPORTS, ids=range(len(NO_EXPORTS)))
async def test_what_is_no_export_is_refused(begin, data):
    _, _, other = await begin()
    status, said = await refusal(other, data)
    assert status == 400 and said.startswith("Nothing can be imported: ")


async def test_another_format_is_refused(begin, file):
    _, _, other = await begin()
    head = json.loads(file[0])
    for spoiled in ({"format": 2}, {"seal": None}, {"embedder": {"name": "x"}}, {"removals": -1}, {"made_at": "x"}):
        data = json.dumps({**head, **spoiled}).encode() + b"\n" + b"".join(file[1:])
        assert (await refusal(other, data))[0] == 400
    assert len(await exported(other)) == 2


@pytest.mark.parametrize("query", ["?force=1", "?force=yes&force=yes", "?kb=x", "?force=yes&x="])
async def test_bad_parameters_are_named(begin, query):
    _, _, other = await begin()
    assert (await refusal(other, b"{}", query))[0] == 400


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
async def test_a_file_that_was_cut_is_noticed(begin, file, cut):
    _, _, other = await begin()
    told = await imported(other, file[:cut])
    assert (told["complete"], told["imported"]) == (False, cut - 1)


async def test_a_file_that_was_cut_within_a_line_is_noticed(begin, file):
    _, _, other = await begin()
    whole = b"".join(file)
    told = await imported(other, [whole[: len(whole) - len(file[-1]) - 40]])
    assert (told["complete"], counts(told)) == (False, {"imported": 2, "bad": 1})


async def test_counts_that_are_not_those_of_the_file_are_noticed(begin, file):
    _, _, other = await begin()
    assert (await imported(other, [file[0], file[1], file[-1]]))["complete"] is False


async def test_lines_may_end_in_any_way(begin, file):
    _, _, other = await begin()
    data = b"\n\r\n" + b"\r\n\n".join(line.strip() for line in file)
    told = await imported(other, [data])
    assert (told["complete"], counts(told), told["lines"]) == (True, {"imported": 3}, 5)


def spoil(line: bytes, **fields) -> bytes:
    return json.dumps({**json.loads(line), **fields}).encode() + b"\n"


async def test_junk_among_the_lines_is_told_and_passed_over(begin, file, monkeypatch):
    _, _, other = await begin()
    first = json.loads(file[1])
    blob = bytearray(base64.b64decode(first["entry"]))
    blob[len(blob) // 2] ^= 1
    junk = [
        b"no JSON\n", b"\xff\xff\n", b"[]\n", b"{}\n", b"null\n", b'"' + b"x" * 10_000 + b'"\n', b"[" * 100_000 + b"\n",
        spoil(file[1], entry="?"), spoil(file[1], entry=base64.b64encode(blob).decode()), spoil(file[1], entry=None),
        spoil(file[1], key="00"), spoil(file[1], key="0" * 64), spoil(file[1], key=json.loads(file[2])["key"]),
        spoil(file[1], fingerprint="0" * 32), spoil(file[1], question=[]), spoil(file[1], question={"text": "x"}),
        spoil(file[1], question={"text": "x", "partition": "0" * 64, "vector": "AAA="}),
        spoil(file[1], question={"text": 1, "partition": "0" * 64, "vector": ""}),
        b'{"end": {"entries": -1, "questions": 0}}\n', b'{"end": 5}\n', b'{"broken": "x"}\n',
    ]  # fmt: skip
    told = await imported(other, [file[0], *junk, *file[1:]])
    assert (told["complete"], counts(told)) == (True, {"imported": 3, "bad": len(junk)})
    assert [bad["line"] for bad in told["bad_lines"]] == list(range(2, 2 + intake.SHOWN))
    assert "no JSON" not in json.dumps(told)


async def test_a_line_that_is_too_long_is_not_held(begin, file):
    _, _, other = await begin(limits__answer_bytes=1000)
    parts = [file[0], b'"' + b"x" * 1_200_000 + b'"\n', *file[1:], b"y" * 1_200_000]
    told = await imported(other, parts)
    assert counts(told) == {"imported": 3, "bad": 2}
    assert {bad["why"] for bad in told["bad_lines"]} == {"is too long"}


async def test_an_export_that_breaks_off_says_so_and_is_no_whole_file(begin, monkeypatch):
    monkeypatch.setattr(export, "PAGE", 2)
    proxy, client, admin = await begin()
    for seed in range(5):
        await client.chat(seed=seed)
    browse, asked = proxy.house.store.browse, []

    async def fail(*args, **options):
        asked.append(args)
        if len(asked) > 1:
            raise Trouble("the file is gone")
        return await browse(*args, **options)

    monkeypatch.setattr(proxy.house.store, "browse", fail)
    lines = await exported(admin)
    assert list(json.loads(lines[-1])) == ["broken"]
    _, _, other = await begin()
    told = await imported(other, lines)
    assert (told["complete"], counts(told)) == (False, {"imported": 2, "bad": 1})


async def test_a_store_that_fails_is_counted(begin, file, monkeypatch):
    _, _, other = await begin()

    async def fail(*_):
        return intake.Reason.STORE_TROUBLE

    monkeypatch.setattr(intake.Shelf, "put", fail)
    assert counts(await imported(other, file)) == {"failed": 3}
    monkeypatch.undo()
    assert counts(await imported(other, file)) == {"imported": 3}


async def test_a_packed_file_is_taken(begin, file, session):
    proxy, _, _ = await begin()
    data = gzip.compress(b"".join(file))
    async with session.post(
        f"{proxy.admin}/admin/import?force=yes", data=data, headers={"Content-Encoding": "gzip"}
    ) as answer:
        assert counts(await answer.json()) == {"imported": 3}


# --- questions -------------------------------------------------------------------------------------------------------


def asking(client: Client, text: str, **more):
    return client.chat(messages=[{"role": "user", "content": text}], **more)


async def learnt(proxy) -> None:
    await until(lambda: not proxy.house.engine.fill._tasks, what="the end of background work")


@pytest.fixture
async def taught(begin) -> list[bytes]:
    """An export of an answer with its question."""
    proxy, client, admin = await begin(embedder=chosen())
    await asking(client, ASKED)
    await learnt(proxy)
    lines = await exported(admin)
    assert json.loads(lines[-1])["end"] == {"entries": 1, "questions": 1}
    assert json.loads(lines[1])["question"]["text"] == ASKED
    return lines


async def test_a_like_question_is_a_hit_elsewhere(begin, taught, backend):
    """With the vectors of the file: nothing is embedded."""
    embedder = chosen()
    _, client, admin = await begin(embedder=embedder)
    assert counts(await imported(admin, taught)) == {"imported": 1, "questions_kept": 1}
    assert embedder.asked == []
    hit = await asking(client, LIKE)
    assert (hit.cache, hit.get("x-cache-tier"), hit.get("x-cache-similarity")) == ("HIT", "semantic", "0.9700")
    assert len(backend.seen) == 1
    assert (await exported(admin))[1:] == taught[1:]


async def test_another_embedder_embeds_the_questions_anew(begin, taught):
    embedder = chosen("another")
    _, client, admin = await begin(embedder=embedder)
    assert counts(await imported(admin, taught)) == {"imported": 1, "questions_embedded": 1}
    assert embedder.asked == [(ASKED, lessons.IMPORTED)]
    hit = await asking(client, LIKE)
    assert (hit.cache, hit.get("x-cache-tier")) == ("HIT", "semantic")
    # What has not changed is not embedded again.
    embedder.asked.clear()
    assert counts(await imported(admin, taught)) == {"present": 1, "questions_known": 1}
    assert embedder.asked == []


async def test_many_questions_are_embedded_in_batches_of_small_steps(begin, monkeypatch):
    monkeypatch.setattr(lessons, "BATCH", 10)
    monkeypatch.setattr(lessons, "STEP", 4)
    proxy, client, admin = await begin(embedder=chosen())
    for number in range(25):
        await asking(client, f"{ASKED} {number}")
    await learnt(proxy)
    lines = await exported(admin)
    embedder = chosen("another")
    running, most = [0], [0]
    embed = embedder.embed

    async def counted(text, scope):
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(0)
        running[0] -= 1
        return await embed(text, scope)

    embedder.embed = counted
    other, _, other_admin = await begin(embedder=embedder)
    enter, sizes = other.house.meaning.index.enter, []

    async def noted(rows):
        sizes.append(len(rows))
        await enter(rows)

    monkeypatch.setattr(other.house.meaning.index, "enter", noted)
    told = await imported(other_admin, lines)
    assert counts(told) == {"imported": 25, "questions_embedded": 25}
    assert (most[0], [size for size in sizes if size]) == (4, [10, 10, 5])


@pytest.mark.parametrize("given", [Unfit.TOO_LONG, Trouble("down")], ids=str)
async def test_a_question_that_cannot_be_embedded_is_left_out(begin, taught, given):
    embedder = chosen("another")
    _, client, admin = await begin(embedder=embedder)
    embedder.given = given
    assert counts(await imported(admin, taught)) == {"imported": 1, "questions_left_out": 1}
    embedder.given = None
    # Its answer is there, and it is learnt the next time.
    assert counts(await imported(admin, taught)) == {"present": 1, "questions_embedded": 1}
    assert (await asking(client, LIKE)).cache == "HIT"


async def test_without_the_layer_answers_are_taken_all_the_same(begin, taught):
    _, client, admin = await begin()
    assert counts(await imported(admin, taught)) == {"imported": 1, "questions_left_out": 1}
    assert (await asking(client, ASKED)).cache == "HIT"
    lines = await exported(admin)
    assert json.loads(lines[0])["embedder"] is None and "question" not in json.loads(lines[1])


def vector(*numbers: float) -> str:
    return base64.b64encode(np.array(numbers, "<f4").tobytes()).decode()


@pytest.mark.parametrize("numbers", [[], [1.0], [0.0] * 64, [float("nan")] * 64, [float("inf")] * 64], ids=len)
async def test_a_vector_that_cannot_be_one_is_embedded_anew(begin, taught, numbers):
    question = {**json.loads(taught[1])["question"], "vector": vector(*numbers)}
    proxy, client, admin = await begin(embedder=chosen())
    told = await imported(admin, [taught[0], spoil(taught[1], question=question), taught[2]])
    assert counts(told) == {"imported": 1, "questions_embedded": 1}
    assert proxy.house.meaning.index.writes.closed
    assert (await asking(client, LIKE)).cache == "HIT"


async def test_an_answer_with_a_tool_call_is_not_found_by_meaning(begin, taught, backend):
    """However its line was made: a question is kept only with an answer of words."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    backend.script = gives(completion(choices=[{"index": 0, "message": message, "finish_reason": "tool_calls"}]))
    _, client, admin = await begin()
    await client.chat()
    lines = await exported(admin)
    other = spoil(lines[1], question=json.loads(taught[1])["question"])
    _, _, admin = await begin(embedder=chosen())
    end = b'{"end": {"entries": 1, "questions": 1}}'
    assert counts(await imported(admin, [taught[0], other, end])) == {"imported": 1, "questions_left_out": 1}


async def test_what_is_answered_is_as_described(begin, file):
    _, _, admin = await begin()
    document = (await admin.get("/admin/openapi.json"))[1]
    responses = document["paths"]["/admin/import"]["post"]["responses"]
    schemas = Schemas(document)
    for lines, force in ((file, True), (file, False), ([*file[:2], b"junk"], True)):
        schema = responses["200"]["content"]["application/json"]["schema"]
        assert schemas.misfit(schema, await imported(admin, lines, force=force)) is None
    assert set(responses) >= {"400", "401", "403", "409", "429", "503"}


# --- over a restart --------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(begin, tmp_path):
    """Starts a proxy on one directory; the same."""

    async def again(**values):
        return await begin(store__data_dir=str(tmp_path / "data"), **values)

    return again


async def test_what_was_purged_before_a_restart_does_not_come_back(kept, clock):
    """The record of removals is on the disk."""
    proxy, client, admin = await kept()
    clock.time += 1000
    await client.chat(X_Cache_Tags="faq", seed=1)
    await client.chat(X_Cache_Tags="other", seed=2)
    lines = await exported(admin)
    clock.time += 100
    await admin.post("/admin/purge", {"selector": {"tags": "faq"}, "wait": True})
    await proxy.running.stop()
    clock.time += 100
    _, client, admin = await kept()
    assert counts(await imported(admin, lines)) == {"purged": 1, "present": 1}
    assert (await client.chat(X_Cache_Tags="faq", seed=1, Cache_Control="only-if-cached")).status == 504


async def test_many_answers_go_to_the_disk_as_fast_as_it_takes_them(kept, begin, monkeypatch):
    """None is dropped because too many wait to be written."""
    _, client, admin = await begin()
    for seed in range(30):
        await client.chat(seed=seed)
    lines = await exported(admin)
    monkeypatch.setattr(intake, "BATCH", 5)
    proxy, client, admin = await kept()
    proxy.house.store._back._store._pending_limit = 30_000
    assert counts(await imported(admin, lines)) == {"imported": 30}
    assert proxy.house.store._back._store.dropped == 0
