"""Calls to the admin API of a running proxy, for commands: what goes wrong is one sentence and an exit code."""

import asyncio
import sys
from typing import Any, NoReturn

import click

from cacheproxy.core import address
from cacheproxy.errors import ConfigurationError

PATIENCE = 120.0
"""Seconds that a call may take: a purge returns only when it has been carried out."""


def options(command: Any) -> Any:
    """The options that every command has that calls."""
    for option in reversed([
        click.option(
            "--admin-url", default="http://127.0.0.1:8801", show_default=True, metavar="URL", help="The admin listener."
        ),
        click.option(
            "--admin-token", envvar="CACHEPROXY_ADMIN__TOKEN", help="Its token; better set CACHEPROXY_ADMIN__TOKEN."
        ),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    ]):  # fmt: skip
        command = option(command)
    return command


def call(  # noqa: PLR0913 - a call, every fact about it
    url: str, token: str | None, method: str, path: str, document: object = None, *, has: str
) -> Any:
    """What the proxy says: an object that has the member `has`. `path`: percent-encoded. Raises `ConfigurationError`
    for what has to be called otherwise; ends the process with 1 where the proxy could not do it to its end."""
    url, headers = reach(url, token)
    status, told = asyncio.run(_call(url, path, headers, method, document))
    if status != 200 or not isinstance(told, dict) or has not in told:
        refused(url, status, told)
    return told


def reach(url: str, token: str | None) -> tuple[str, dict[str, str]]:
    """The base of the URLs of calls, and their header fields. Raises `ConfigurationError`."""
    if isinstance(wrong := address.read(url), str):
        raise ConfigurationError(f"`--admin-url` {wrong}")
    token = (token or "").strip() or None
    if token is not None and not token.isprintable():
        raise ConfigurationError("`--admin-token` is no token: it has characters that no header can have")
    base = (url if "://" in url else f"http://{url}").rstrip("/")
    return base, {} if token is None else {"Authorization": f"Bearer {token}"}


def refused(url: str, status: int, told: Any) -> NoReturn:
    """The proxy did not do it. Raises `ConfigurationError` for what has to be called otherwise; ends the process with 1
    where the proxy could not."""
    error = told.get("error") if isinstance(told, dict) else None
    why = error.get("message") if isinstance(error, dict) else None
    sentence = f"{url} answers {status}: {why}" if why else f"{url} answers {status}; is it an admin listener?"
    if status < 500:
        raise ConfigurationError(sentence)
    click.echo(f"cacheproxy: {sentence}", err=True)
    sys.exit(1)


async def _call(base: str, path: str, headers: dict[str, str], method: str, document: object) -> tuple[int, Any]:
    import aiohttp
    from yarl import URL

    timeout = aiohttp.ClientTimeout(total=PATIENCE, sock_connect=10)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(
                method, URL(base + path, encoded=True), json=document, headers=headers, allow_redirects=False
            ) as answer,
        ):
            try:
                return answer.status, await answer.json(content_type=None)
            except ValueError:
                return answer.status, None
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        why = "no answer in time" if isinstance(error, TimeoutError) else "nobody answers there"
        raise ConfigurationError(f"cannot reach {base}: {why}") from None
