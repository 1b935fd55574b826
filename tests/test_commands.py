"""The commands that talk to a running proxy, as a user runs them."""

import json
from collections.abc import Iterator

import pytest

from tests.commands import Commands
from tests.fakes.backend import plain
from tests.fakes.ports import free_port
from tests.rig import BODY, Client, until


@pytest.fixture(scope="module")
def commands(tmp_path_factory) -> Iterator[Commands]:
    """Runs commands."""
    started = Commands(tmp_path_factory.mktemp("commands"))
    yield started
    started.close()


@pytest.fixture
def run(commands, proxy):
    """Runs one that calls the proxy: ``done = await run("kb", "list")``."""

    async def begin(*arguments: str, **environment: str):
        return await commands.run(*arguments, "--admin-url", proxy.admin, environment=environment)

    return begin


async def told(done) -> dict:
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


# --- kb --------------------------------------------------------------------------------------------------------------


async def test_a_version_is_set_and_listed(run, client):
    await client.chat(X_Cache_KB="a%2Fb%20{x}")
    done = await run("kb", "set", "a/b {x}", "v2 é", "--sequence", "3")
    assert (done.code, done.out, done.err) == (0, "a/b {x} is at v2 é (published): 1 answers removed\n", "")
    assert (await client.chat(X_Cache_KB="a%2Fb%20{x}")).cache == "MISS"
    listed = (await run("kb", "list")).out
    assert listed.startswith("a/b {x}  v2 é  number 3  since 2")
    assert [row["version"] for row in (await told(await run("kb", "list", "--json")))["kb"]] == ["v2 é"]
    assert (await told(await run("kb", "set", "a/b {x}", "v1", "--sequence", "2", "--json")))["course"] == "outdated"


async def test_changed_documents_spare_the_others(run, client):
    for seed, tag in ((1, "doc:a"), (2, "doc:b"), (3, "doc:c")):
        await client.chat(seed=seed, X_Cache_KB="faq", X_Cache_Tags=tag)
    done = await told(await run("kb", "set", "faq", "v2", "--document", "a", "--document", "b", "--json"))
    assert done["purged"] == 2
    assert (await client.chat(seed=3, X_Cache_KB="faq", X_Cache_Tags="doc:c")).cache == "HIT"


# --- purge -----------------------------------------------------------------------------------------------------------


async def fill(client: Client) -> str:
    """Four answers; the id of the last."""
    await client.chat(seed=1, X_Cache_Tags="a, é")
    await client.chat(seed=2, X_Cache_KB="faq")
    await client.chat(seed=3, X_Cache_Namespace="n")
    return (await client.chat(seed=4, model="other")).get("x-cache-entry-id")


@pytest.mark.parametrize(
    ("options", "number"),
    [
        (["--tag", "a"], 1), (["--tag", "é", "--tag", "x"], 1), (["--kb", "faq"], 1), (["--model", "other"], 1),
        (["--namespace", "n"], 1), (["--namespace", ""], 3), (["--older-than", "1h"], 0),
        (["--model", "other", "--namespace", "n"], 0), (["--all", "--yes"], 4),
    ],
)  # fmt: skip
async def test_what_is_meant_is_removed(run, client, options, number):
    await fill(client)
    assert (await run("purge", *options)).out == f"{number} answers removed\n"


async def test_they_are_only_counted(run, client):
    await fill(client)
    assert (await run("purge", "--dry-run", "--tag", "a")).out == "1 answers are meant\n"
    assert (await told(await run("purge", "--dry-run", "--all", "--json")))["matched"] == 4
    assert (await client.chat(seed=1, X_Cache_Tags="a, é")).cache == "HIT"


async def test_an_answer_is_removed_by_its_id(run, client):
    assert (await run("purge", "--id", await fill(client))).out == "1 answers removed\n"
    assert (await client.chat(seed=4, model="other")).cache == "MISS"


async def test_softly_is_past_its_lifetime(run, client):
    await fill(client)
    assert (await run("purge", "--all", "--yes", "--soft")).out == "4 answers made stale\n"
    assert (await client.chat(seed=2, X_Cache_KB="faq", Cache_Control="max-stale")).cache == "STALE"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "say which answers"), (["--all", "--tag", "a"], "say which answers"), (["--all"], "--all needs --yes"),
        (["--older-than", "soon"], "Invalid value for '--older-than'"), (["--dry-run"], "say which answers"),
    ],
)  # fmt: skip
async def test_what_cannot_be_meant_removes_nothing(run, client, options, says):
    await fill(client)
    done = await run("purge", *options)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert (await client.chat(seed=4, model="other")).cache == "HIT"


# --- what goes wrong -------------------------------------------------------------------------------------------------


async def test_nobody_there(commands):
    done = await commands.run("kb", "list", "--admin-url", f"http://127.0.0.1:{free_port()}")
    assert done.code == 2
    assert done.sentence.endswith("nobody answers there")


async def test_what_is_no_admin_listener(commands, proxy):
    for path in ("", "/v1"):
        done = await commands.run("kb", "list", "--admin-url", proxy.base + path)
        assert done.code == 2
        assert "is it an admin listener?" in done.sentence
    done = await commands.run("kb", "list", "--admin-url", "ftp://x")
    assert (done.code, done.sentence) == (
        2, "cacheproxy: `--admin-url` must be a URL such as http://127.0.0.1:8000",
    )  # fmt: skip


async def test_the_token_is_sent_and_never_shown(commands, start):
    token = "hunter2-hunter2"
    proxy = await start(admin__token=token)
    call = ("kb", "list", "--admin-url", proxy.admin, "--json")
    assert await told(await commands.run(*call, environment={"CACHEPROXY_ADMIN__TOKEN": token})) == {"kb": []}
    assert await told(await commands.run(*call, "--admin-token", token)) == {"kb": []}
    for wrong in ((), ("--admin-token", "other-than-that")):
        done = await commands.run(*call, *wrong)
        assert done.code == 2
        assert "answers 401" in done.sentence
        assert "other-than-that" not in done.err


@pytest.mark.parametrize("call", [("kb", "list", "--admin-token", "x\ny"), ("warm", "/dev/null", "--api-key", "x\0y")])
async def test_a_token_that_no_header_can_have_is_refused_and_not_shown(commands, tmp_path, call):
    state = ("--state", str(tmp_path / "state")) if call[0] == "warm" else ()
    done = await commands.run(*call, *state)
    assert done.code == 2
    assert "that no header can have" in done.sentence


async def test_what_was_not_carried_out_is_one(run, proxy, monkeypatch):
    from cacheproxy.errors import Trouble

    async def fails(*_told, **_more):
        raise Trouble("no answer in time")

    monkeypatch.setattr(proxy.house.store, "fell", fails)
    for call in (("kb", "set", "faq", "v2"), ("purge", "--tag", "a")):
        done = await run(*call)
        assert (done.code, done.out) == (1, "")
        assert "answers 503" in done.sentence


async def test_a_bad_name_is_said(run):
    done = await run("kb", "set", "faq", "x" * 20_000)
    assert done.code == 2
    assert "answers 400: version must be" in done.sentence


# --- warm ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def warm(commands, proxy, tmp_path):
    """Warms the proxy: ``done = await warm([line, …], "--budget-requests", "2")``."""

    async def begin(lines, *arguments: str, **environment: str):
        file = tmp_path / "requests.jsonl"
        file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return await commands.run("warm", str(file), "--url", proxy.base, *arguments, environment=environment)

    return begin


def bodies(number: int) -> list[dict]:
    return [{**BODY, "seed": seed} for seed in range(number)]


async def test_what_was_warmed_is_a_hit_for_its_key(warm, client, backend):
    lines = [*bodies(3), {"path": "/v1/chat/completions", "headers": {"X-Cache-KB": "faq"}, "body": BODY}]
    done = await warm(lines, "--json", OPENAI_API_KEY="A")
    assert done.code == 0
    assert json.loads(done.out)["asked"] == 4
    for seed in range(3):
        assert (await client.chat(seed=seed)).cache == "HIT"
    assert (await client.chat(X_Cache_KB="faq")).cache == "HIT"
    assert len(backend.seen) == 4


async def test_it_goes_on_where_it_was(warm, backend):
    done = await warm(bodies(5), "--budget-requests", "2", "--json", "--api-key", "A")
    told = json.loads(done.out)
    assert (told["asked"], told["left"], done.code) == (2, 3, 0)
    told = json.loads((await warm(bodies(5), "--json", "--api-key", "A")).out)
    assert (told["asked"], told["done_before"], told["left"]) == (3, 2, 0)
    assert len(backend.seen) == 5


async def test_once_all_is_done_the_next_run_begins_anew(warm, client, proxy, tmp_path):
    """As one that is started every night has to."""
    for left, present in ((False, 0), (False, 3)):
        told = json.loads((await warm(bodies(3), "--json", "--api-key", "A")).out)
        assert (told["done_before"], told["present"]) == (0, present)
        assert (tmp_path / "requests.jsonl.state").exists() is left


async def test_nothing_is_begun_when_the_time_is_over(warm, backend):
    told = json.loads((await warm(bodies(3), "--budget-seconds", "0", "--json", "--api-key", "A")).out)
    assert (told["asked"], told["left"], backend.seen) == (0, 3, [])
    done = await warm(bodies(3), "--budget-seconds", "soon")
    assert (done.code, "Invalid value for '--budget-seconds'" in done.err) == (2, True)


async def test_what_is_not_kept_is_told_by_reason(warm, backend):
    lines = [{"body": BODY, "headers": {"Cache-Control": "no-store"}}, {"path": "/v1/files", "body": {}}, BODY]
    done = await warm(lines, "--api-key", "A")
    assert (
        "2 asked of the backend (14 tokens): 1 stored, 1 not kept (no_store), 1 not kept (uncacheable_path);"
        in done.out
    )
    assert len(backend.seen) == 2


async def test_the_same_twice_at_once_is_asked_once(warm, proxy, backend):
    async def script(exchange):
        await until(lambda: proxy.house.proxy.running == 2)
        await plain(exchange)

    backend.script = script
    told = json.loads((await warm([BODY, BODY], "--api-key", "A", "--json")).out)
    assert (told["asked"], told["stored"], told["present"], len(backend.seen)) == (1, 1, 1, 1)


async def test_what_cannot_be_told_is_not_guessed(commands, start, tmp_path):
    proxy = await start(access__hide_hits=True)
    (tmp_path / "r.jsonl").write_text(json.dumps(BODY))
    done = await commands.run("warm", str(tmp_path / "r.jsonl"), "--url", proxy.base, "--json")
    told = json.loads(done.out)
    assert (told["asked"], told["stored"], told["not_kept"], told["present"]) == (1, 0, {}, 0)


async def test_what_is_there_costs_no_budget(warm, client):
    for seed in range(3):
        await client.chat(seed=seed)
    told = json.loads((await warm(bodies(5), "--budget-requests", "2", "--json", "--api-key", "A")).out)
    assert (told["present"], told["asked"], told["left"]) == (3, 2, 0)


async def test_tokens_are_a_budget_too(warm):
    """The scripted backend counts 7 tokens an answer."""
    done = await warm(bodies(9), "--budget-tokens", "8", "--concurrency", "1", "--json", "--api-key", "A")
    told = json.loads(done.out)
    assert (told["asked"], told["left"], told["tokens"]) == (2, 7, 14)


async def test_bad_lines_and_failures_are_told_by_number(warm, backend):
    async def script(exchange):
        if exchange.seen.json["seed"] == 1:
            await exchange.json({"error": {"message": "secret"}}, "400 Bad Request")
        elif exchange.seen.json["seed"] == 2:
            exchange.cut()
        else:
            await plain(exchange)

    backend.script = script
    lines = ["{", *bodies(3), "[]", "", {"x": 1}, {"body": 5}, {"body": {}, "headers": {"a b": "c"}}]
    done = await warm(lines, "--api-key", "A")
    assert (done.code, done.out) == (
        1, "1 asked of the backend (7 tokens): 1 stored; 0 there already, 0 done before, 0 left by the budget\n",
    )  # fmt: skip
    assert [line.partition(" ")[2] for line in done.err.splitlines() if line.startswith("line")] == [
        "3: answered 400", "4: answered 502", "1: is not valid JSON", "5: is not a JSON object",
        "7: has neither `body` nor `model`", "8: `body` is not a JSON object",
        "9: `headers` has something that is no header",
    ]  # fmt: skip
    again = json.loads((await warm(lines, "--api-key", "A", "--json")).out)
    assert (again["asked"], again["done_before"], len(again["failed"])) == (0, 1, 2)


async def test_what_the_proxy_puts_off_is_asked_again(warm, backend):
    """Nothing is urgent here: the lowest priority, and patience."""
    backend.script = refusing = Refusing(2)
    told = json.loads((await warm(bodies(1), "--api-key", "A", "--json")).out)
    assert (told["asked"], told["failed"], refusing.left) == (1, [], 0)


async def test_what_is_sent_is_the_least_urgent_and_a_break_is_one_lines(commands, tmp_path, backend):
    """As whoever listens there sees it."""

    async def script(exchange):
        if exchange.seen.json["seed"] == 1:
            exchange.cut()
        else:
            await plain(exchange)

    backend.script = script
    headers = {"Host": "other", "X-Priority": "P0", "X-Cache-Tags": "é", "Authorization": "Bearer own"}
    lines = [{"body": body, "headers": headers} for body in bodies(3)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    call = ("warm", str(tmp_path / "r.jsonl"), "--url", f"{backend.url}/v1/", "--concurrency", "1", "--api-key", "A")
    done = await commands.run(*call)
    assert (done.code, done.err.splitlines()[-1]) == (1, "line 2: broke off")
    first = backend.seen[0]
    assert first.target == b"/v1/chat/completions"
    assert first.all(b"x-priority") == [b"P2"]
    assert first.all(b"authorization") == [b"Bearer own"]
    assert first.all(b"x-cache-tags") == ["é".encode()]
    assert first.get(b"host") != b"other"


class Refusing:
    """A backend that has too much to do, some times."""

    def __init__(self, times: int) -> None:
        self.left = times

    async def __call__(self, exchange) -> None:
        if self.left:
            self.left -= 1
            await exchange.json({"error": {}}, "429 Too Many Requests", b"Retry-After: 0\r\n")
        else:
            await plain(exchange)


async def test_streams_are_warmed_and_counted_too(warm, client):
    lines = [{**BODY, "stream": True, "stream_options": {"include_usage": True}}]
    assert json.loads((await warm(lines, "--api-key", "A", "--json")).out)["tokens"] == 7
    assert (await client.chat()).cache == "HIT"


async def test_without_a_proxy_it_ends_and_keeps_what_is_done(commands, tmp_path):
    (tmp_path / "r.jsonl").write_text(json.dumps(BODY) + "\n")
    done = await commands.run("warm", str(tmp_path / "r.jsonl"), "--url", f"http://127.0.0.1:{free_port()}")
    assert done.code == 2
    assert "cannot reach" in done.err
    assert (tmp_path / "r.jsonl.state").read_bytes() == b""


async def test_a_file_that_is_not_there(commands, tmp_path):
    for command in ("warm", "replay"):
        done = await commands.run(command, str(tmp_path / "none"))
        assert (done.code, done.sentence) == (
            2, f"cacheproxy: cannot read {tmp_path}/none: No such file or directory",
        )  # fmt: skip
