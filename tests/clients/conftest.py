"""Fixtures: real client packages, run as programs of their own."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parts import clients, place

SCRIPTS = Path(__file__).parent / "scripts"
PART = {
    "openai_sync.py": "openai",
    "openai_final.py": "openai",
    "openai_async.py": "openai",
    "openai_errors.py": "openai",
    "openai_many.py": "openai",
    "langchain.py": "langchain",
    "litellm_sdk.py": "litellm",
    "pydantic_ai_agent.py": "pydantic_ai",
}
SECONDS = 120

Run = Callable[..., Awaitable[Any]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.clients)
            item.add_marker(pytest.mark.timeout(300))


def _command(script: str) -> list[str]:
    if not script.endswith(".mjs"):
        return [str(place.python_part(PART[script])), str(SCRIPTS / script)]
    if not clients.has_node():
        pytest.skip("NODE OR NPM IS MISSING: the SDK for Node was not tested")
    # Imports are looked up beside the script, so it has to stand where the packages are.
    copy = clients.node_modules() / script
    copy.write_bytes((SCRIPTS / script).read_bytes())
    return ["node", str(copy)]


@pytest.fixture
def run() -> Run:
    """Runs a script against a base URL: ``seen = await run("openai_sync.py", proxy.base, argument)``."""

    async def begin(script: str, base: str, argument: Any, *, key: str = "sk-a", model: str = "m") -> Any:
        command = [*_command(script), argument if isinstance(argument, str) else json.dumps(argument)]
        environment = {
            **{name: value for name, value in os.environ.items() if "PROXY" not in name.upper()},
            "OPENAI_BASE_URL": f"{base}/v1", "OPENAI_API_KEY": key, "MODEL": model,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGSMITH_TRACING": "false", "DO_NOT_TRACK": "1",
        }  # fmt: skip
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            output, errors = await asyncio.wait_for(process.communicate(), SECONDS)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0, errors.decode(errors="replace")
        return json.loads(output.splitlines()[-1])

    return begin
