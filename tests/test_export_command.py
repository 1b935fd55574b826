"""``cacheproxy export`` and ``import``, as a user runs them."""

import json
from collections.abc import Iterator

import pytest

from tests.commands import Commands
from tests.rig import Client


@pytest.fixture(scope="module")
def commands(tmp_path_factory) -> Iterator[Commands]:
    started = Commands(tmp_path_factory.mktemp("commands"))
    yield started
    started.close()


@pytest.fixture
async def pair(start, session, tmp_path):
    """Two proxies of one secret, the first of which has answers."""
    (tmp_path / "secret").write_text("s" * 40)
    found = [await start(store__secret_file=str(tmp_path / "secret")) for _ in range(2)]
    client = Client(found[0].base, session)
    for seed in range(3):
        await client.chat(seed=seed, X_Cache_Tags=f"t{seed}")
    return found


@pytest.fixture
def run(commands):
    async def begin(proxy, *arguments: str, **environment: str):
        return await commands.run(*arguments, "--admin-url", proxy.admin, environment=environment)

    return begin


async def test_answers_go_from_one_proxy_to_another(run, pair, session, tmp_path):
    one, other = pair
    path = tmp_path / "answers.ndjson"
    done = await run(one, "export", str(path))
    assert (done.code, done.out, done.err) == (0, "3 answers, 0 of them with their questions\n", "")
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(path.read_bytes().splitlines()) == 5
    assert [entry.name for entry in tmp_path.iterdir() if entry.suffix == ".part"] == []
    done = await run(other, "import", str(path))
    assert done.code == 1 and done.out.startswith("0 answers imported")
    assert "3 answers left out: the proxy knows of all purges since 2" in done.sentence and "--force" in done.err
    done = await run(other, "import", str(path), "--force")
    assert (done.code, done.out, done.err) == (0, "3 answers imported; 0 questions\n", "")
    assert (await Client(other.base, session).chat(seed=1, X_Cache_Tags="t1")).cache == "HIT"
    told = json.loads((await run(other, "import", str(path), "--json")).out)
    assert (told["complete"], told["present"]) == (True, 3)


async def test_lines_go_to_standard_output(run, pair, tmp_path):
    done = await run(pair[0], "export", "--tag", "t1")
    assert (done.code, len(done.out.splitlines())) == (0, 3)
    assert done.err == "1 answers, 0 of them with their questions\n"
    assert (await run(pair[0], "export", "-", "--json")).code == 2
    told = json.loads((await run(pair[0], "export", str(tmp_path / "x"), "--json")).out)
    assert told == {"file": str(tmp_path / "x"), "entries": 3, "questions": 0}


async def test_a_file_that_was_cut_ends_with_1(run, pair, tmp_path):
    path = tmp_path / "x"
    await run(pair[0], "export", str(path))
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]) + b"junk\n")
    done = await run(pair[1], "import", str(path), "--force")
    assert (done.code, done.out) == (1, "2 answers imported, 1 unreadable lines; 0 questions\n")
    assert done.err.splitlines() == [
        "cacheproxy: the file is not whole: its last line is missing, or it has other counts",
        "cacheproxy: line 4 is not a JSON object",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["import", "{tmp}/nothing"], "cannot read"), (["import", "{tmp}"], "cannot read"),
        (["import", "{tmp}/junk"], "Nothing can be imported"), (["export", "{tmp}/no/place"], "cannot write"),
    ],
)  # fmt: skip
async def test_what_cannot_be_is_said_in_one_line(run, pair, tmp_path, arguments, said):
    (tmp_path / "junk").write_text("junk\n" * 1_000_000)
    done = await run(pair[0], *(argument.format(tmp=tmp_path) for argument in arguments))
    assert done.code == 2 and said in done.sentence


async def test_another_secret_is_refused(run, pair, start, tmp_path):
    await run(pair[0], "export", str(tmp_path / "x"))
    done = await run(await start(), "import", str(tmp_path / "x"), "--force")
    assert done.code == 2 and "store.secret_file" in done.sentence


async def test_a_token_is_needed_where_one_is_set(run, start, tmp_path):
    proxy = await start(admin__token="a-full-admin-token", admin__read_token="a-token-that-reads")
    (tmp_path / "x").write_bytes(b"x")
    for arguments in (["export"], ["import", str(tmp_path / "x")]):
        done = await run(proxy, *arguments)
        assert done.code == 2 and "401" in done.sentence
        done = await run(proxy, *arguments, CACHEPROXY_ADMIN__TOKEN="a-token-that-reads")
        assert done.code == 2 and "403" in done.sentence
    assert (await run(proxy, "export", CACHEPROXY_ADMIN__TOKEN="a-full-admin-token")).code == 0


async def test_nobody_there(commands, tmp_path):
    (tmp_path / "x").write_bytes(b"x")
    for arguments in (["export"], ["import", str(tmp_path / "x")]):
        done = await commands.run(*arguments, "--admin-url", "http://127.0.0.1:1")
        assert done.code == 2 and "cannot reach" in done.sentence


async def test_an_export_that_broke_off_leaves_the_file_that_was_there(run, pair, tmp_path, monkeypatch):
    from cacheproxy.engine import export
    from cacheproxy.errors import Trouble

    async def fail(*_, **__):
        raise Trouble("gone")

    path = tmp_path / "x"
    path.write_text("before")
    monkeypatch.setattr(pair[0].house.store, "browse", fail)
    done = await run(pair[0], "export", str(path))
    assert done.code == 1 and "not whole" in done.sentence
    assert path.read_text() == "before" and export.PAGE
