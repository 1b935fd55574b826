"""What docs/knowledge.md says to do is done, as it stands there, at a running proxy."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.fakes.backend import completion
from tests.parts import place
from tests.rig import ROOT, Client

PAGE = (ROOT / "docs" / "knowledge.md").read_text("utf-8")
TOKEN = "a-token-of-the-rig"


def block(language: str, words: str) -> str:
    """The only block of this language that has these words."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (found,) = [one for one in blocks if words in one]
    return found


@pytest.fixture
async def asking(start, session):
    """Starts a proxy whose admin API wants a token."""

    async def begin(**values) -> Client:
        proxy = await start(admin__token=TOKEN, **values)
        client = Client(proxy.base, session)
        client.admin = proxy.admin
        return client

    return begin


async def run(client: Client, code: str, *command: str, **environment: str) -> str:
    """What `code` prints, with the addresses of this proxy in it."""
    code = code.replace("http://127.0.0.1:8800", client.base).replace("http://127.0.0.1:8801", client.admin)
    code = code.replace("curl ", f'curl -H "Authorization: Bearer {TOKEN}" ')
    bare = {name: value for name, value in os.environ.items() if "PROXY" not in name.upper()}
    told = {
        **bare, "ADMIN": client.admin, "TOKEN": TOKEN, "CACHEPROXY_ADMIN__TOKEN": TOKEN, "OPENAI_API_KEY": "A",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
        "LANGSMITH_TRACING": "false", **environment,
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *command, code, env=told, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await asyncio.wait_for(process.communicate(), 100)
    assert process.returncode == 0, errors.decode()
    return output.decode()


async def shell(client: Client, code: str, **environment: str) -> str:
    return await run(client, f"set -e\n{code}", "bash", "-c", **environment)


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="CURL IS MISSING")


@needs_curl
async def test_a_version_by_curl(asking):
    client = await asking()
    await client.chat(X_Cache_KB="handbook")
    code = block("sh", '"2026-12-01"')
    command, said = code.rsplit("\n", 2)[0], json.loads(code.rsplit("\n", 2)[1])
    told = json.loads(await shell(client, command))
    assert told.keys() == said.keys()
    assert (told["name"], told["version"], told["purged"]) == ("handbook", "2026-12-01", 1)


@needs_curl
async def test_changed_documents_by_curl(asking):
    client = await asking()
    labels = [{"X_Cache_Tags": "doc:faq-7, doc:faq-8"}, {"X_Cache_Tags": "doc:faq-8"}, {}]
    for seed, label in enumerate(labels):
        await client.chat(X_Cache_KB="handbook", seed=seed, **label)
    assert json.loads(await shell(client, block("sh", "changed_documents")))["purged"] == 2
    assert (await client.chat(X_Cache_KB="handbook", seed=1)).cache == "HIT"


@needs_curl
async def test_the_nightly_job(asking):
    client = await asking()
    await client.chat(X_Cache_KB="handbook")
    told = json.loads(await shell(client, block("sh", "date -u")))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", told["version"])
    assert told["purged"] == 1


async def test_by_commands(asking):
    client = await asking()
    await client.chat(X_Cache_KB="handbook")
    code = block("sh", "cacheproxy kb list").replace("handbook is at", "# handbook is at")
    code = code.replace("cacheproxy kb", f"{sys.executable} -m cacheproxy kb").replace("cacheproxy purge", "#")
    code = re.sub(r"(kb (?:set|list).*)", rf"\1 --admin-url {client.admin}", code)
    said = await shell(client, code)
    assert said.startswith("handbook is at v8 (published): 1 answers removed\nhandbook  v8  since ")


def git(*arguments: str, at: Path) -> str:
    names = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "core.quotePath=true"]
    return subprocess.run(
        ["git", *names, *arguments], cwd=at, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="GIT IS MISSING")
async def test_the_faq_in_git(asking, tmp_path):
    """A change, a move and odd names; a commit that changes nothing there tells nothing."""
    faq, commits = tmp_path / "faq", []
    git("init", "-q", at=tmp_path)
    faq.mkdir()
    names = ["a.md", "old.md", 'ö "b", c.md', "same.md"]
    for name in names:
        (faq / name).write_text(f"This is {name}, with some words that stay.\n" * 5)
    steps = [
        lambda: None, lambda: (tmp_path / "README").write_text("x"),
        lambda: [
            (faq / "a.md").write_text("A"), (faq / names[2]).write_text("B"), (faq / "old.md").rename(faq / "new.md"),
        ],
    ]  # fmt: skip
    for step in steps:
        step()
        git("add", "-A", at=tmp_path)
        git("commit", "-q", "-m", "x", at=tmp_path)
        commits.append(git("rev-parse", "HEAD", at=tmp_path))
    client = await asking()
    for seed, name in enumerate(names):
        label = f"doc:faq/{name}".encode().hex("%", 1)
        await client.chat(seed=seed, X_Cache_KB="faq", X_Cache_Tags=f"%{label}")
    recipe = f"cd {tmp_path}\n" + block("bash", "git diff").replace(
        "cacheproxy kb", f"{sys.executable} -m cacheproxy kb"
    )
    assert await shell(client, recipe, BEFORE=commits[0], AFTER=commits[1]) == ""
    assert "3 answers removed" in await shell(client, recipe, BEFORE=commits[1], AFTER=commits[2])
    assert (await client.chat(seed=3, X_Cache_KB="faq")).cache == "HIT"


async def test_a_retrieval_service_says_what_it_read(asking, backend, session):
    scope: dict = {}
    code = compile(block("python", "cache_fields"), "knowledge.md", "exec")
    exec(code, scope)
    lines = scope["cache_fields"]("hand, book", "v1@2", ["faq-7", "é, @%.md"])

    async def script(exchange) -> None:
        extra = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        await exchange.json(completion(), extra=extra.encode("ascii"))

    backend.script = script
    client = await asking()
    await client.chat()
    async with session.get(client.admin + "/admin/entries", headers={"Authorization": f"Bearer {TOKEN}"}) as told:
        (row,) = (await told.json())["entries"]
    assert (row["tags"], row["kb"]) == (["doc:faq-7", "doc:é, @%.md"], ["hand, book@v1@2"])


@pytest.mark.clients
@pytest.mark.timeout(300)
async def test_langchain(asking, backend):
    client = await asking()
    code = block("python", "langchain_openai") + (
        "\nfrom langchain_core.documents import Document\n"
        "read = [Document(page_content='x', metadata={'source': name}) for name in ('faq-7', 'é, @%.md')]\n"
        "print(ask('Why?', read).content, ask('Why?', read).content, ask('How?', []).content)\n"
    )
    assert await run(client, code, str(place.python_part("langchain")), "-c") == "Hello. Hello. Hello.\n"
    assert backend.calls == 2
    told = {"version": "v2", "changed_documents": ["é, @%.md"]}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with client.session.put(client.admin + "/admin/kb/handbook", json=told, headers=headers) as answer:
        assert (await answer.json())["purged"] == 2, "what names it, and what names nothing"


LLAMA_INDEX = """Context information is below.
---------------------
file_path: /srv/faq/b.md

Hello b

file_path: /srv/faq/a.md

Hello a
---------------------
Query: Why?
Answer: """
"""A prompt of its query engine."""


async def test_llama_index(asking):
    """Its client is that of OpenAI, with the same header; what is its own is the prompt."""
    (pattern,) = re.findall(r"`(kb\.extract: .*file_path.*)`", PAGE)
    places = yaml.safe_load(pattern)["kb.extract"]
    client = await asking(kb__extract=places)
    await client.chat(messages=[{"role": "user", "content": LLAMA_INDEX}], X_Cache_KB="handbook")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with client.session.get(client.admin + "/admin/entries?tag=doc:/srv/faq/a.md", headers=headers) as told:
        (row,) = (await told.json())["entries"]
    assert row["tags"] == ["doc:/srv/faq/a.md", "doc:/srv/faq/b.md"]


async def test_what_a_prompt_says(asking):
    """The settings on the page load, and find what they say."""
    client = await asking(kb__extract=yaml.safe_load(block("yaml", "extract:"))["kb"]["extract"])
    told = {"metadata": {"documents": ["faq-7"], "kb": "handbook@v7"}}
    messages = [{"role": "user", "name": "ann", "content": '<doc id="faq-8">x</doc> Why?'}]
    await client.chat(messages=messages, **told)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with client.session.get(client.admin + "/admin/entries", headers=headers) as answer:
        (row,) = (await answer.json())["entries"]
    assert (row["tags"], row["kb"]) == (["ann", "doc:faq-7", "doc:faq-8"], ["handbook@v7"])


@pytest.mark.parametrize("words", ['"specversion"'])
async def test_an_event(asking, words):
    client = await asking()
    await client.chat(X_Cache_KB="handbook", X_Cache_Tags="doc:faq-7")
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/cloudevents+json"}
    async with client.session.post(client.admin + "/admin/events", data=block("json", words), headers=headers) as told:
        assert (await told.json())["purged"] == 1
