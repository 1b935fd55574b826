"""``cacheproxy warm``: has a running proxy asked what it is to know."""

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cacheproxy.core import address, quantities
from cacheproxy.errors import ConfigurationError

if TYPE_CHECKING:
    from cacheproxy.engine.traffic import BadLine
    from cacheproxy.engine.warming import Result


def _time(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    found = None if value is None else quantities.duration(value)
    if isinstance(found, str):
        raise click.BadParameter(found)
    return found


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--url", default="http://127.0.0.1:8800", show_default=True, help="The proxy.")
@click.option("--api-key", envvar="OPENAI_API_KEY", help="For requests without one of their own [$OPENAI_API_KEY].")
@click.option("--concurrency", type=click.IntRange(1, 256), default=4, show_default=True, help="Requests at once.")
@click.option("--budget-requests", type=click.IntRange(0), metavar="N", help="Most requests that reach the backend.")
@click.option("--budget-tokens", type=click.IntRange(0), metavar="N", help="Stop once the backend counted so many.")
@click.option("--budget-seconds", callback=_time, metavar="TIME", help="Begin none later than that: 90, 30m, 2h.")
@click.option("--state", type=click.Path(path_type=Path), help="Where it is kept what is done [FILE.state].")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def warm(  # noqa: PLR0913 - the options of the command
    file: str, url: str, api_key: str | None, concurrency: int, budget_requests: int | None,
    budget_tokens: int | None, budget_seconds: float | None, state: Path | None, *, as_json: bool,
) -> None:  # fmt: skip
    """Ask the proxy every request of FILE, so that it has their answers: with the lowest priority, and of the backend
    only what is not fresh. Each line is the body of a chat completion, or {"body": …, "path": …, "headers": …}.
    Answers are kept for the API key that they were asked with. A run that did not come to its end is gone on with by
    the next. Exit code 1 if a line was no request, or failed.

    \b
    Every morning, for an hour at most:
      cacheproxy warm faq.jsonl --api-key sk-… --budget-seconds 1h
    """
    from cacheproxy.commands.progress import Progress
    from cacheproxy.commands.traffic import requests
    from cacheproxy.commands.warming import Caller
    from cacheproxy.engine.traffic import BadLine
    from cacheproxy.engine.warming import Budget

    if isinstance(wrong := address.read(url), str):
        raise ConfigurationError(f"`--url` {wrong}")
    base = (url if "://" in url else f"http://{url}").rstrip("/").removesuffix("/v1")
    if file == "-" and state is None:
        raise click.UsageError("say with --state where it is kept what is done")
    read = list(requests(file))
    bad = [one for one in read if isinstance(one, BadLine)]
    api_key = (api_key or "").strip()
    if not api_key.isprintable():
        raise ConfigurationError("`--api-key` is no key: it has characters that no header can have")
    usual = ((b"Authorization", f"Bearer {api_key}".encode()),) if api_key else ()
    with Progress(state or Path(f"{file}.state")) as progress:
        wanted = [one for one in read if not isinstance(one, BadLine) and one not in progress]
        caller = Caller(base, usual, Budget(budget_requests, budget_tokens, budget_seconds), progress)
        with click.progressbar(length=len(wanted), label="warming", file=sys.stderr) as bar:
            asyncio.run(caller.run(wanted, concurrency, bar.update))
        if not caller.result.left and not caller.result.failed:
            progress.finish()
    done_before = len(read) - len(bad) - len(wanted)
    if as_json:
        click.echo(json.dumps({**caller.result.plain(bad), "done_before": done_before}, indent=2))
    else:
        _show(caller.result, bad, done_before)
    sys.exit(1 if caller.result.failed or bad else 0)


def _show(result: "Result", bad: "list[BadLine]", done_before: int) -> None:
    from cacheproxy.commands.traffic import SHOWN

    why_not = sorted(result.not_kept.items(), key=lambda one: (-one[1], one[0]))
    kept = [f"{result.stored} stored", *(f"{count} not kept ({why})" for why, count in why_not)]
    click.echo(
        f"{result.asked} asked of the backend ({result.tokens} tokens): {', '.join(kept)}; "
        f"{result.present} there already, {done_before} done before, {result.left} left by the budget"
    )
    for number, status in sorted(result.failed)[:SHOWN]:
        click.echo(f"line {number}: {f'answered {status}' if status else 'broke off'}", err=True)
    for one in bad[:SHOWN]:
        click.echo(f"line {one.number}: {one.why}", err=True)
    if (more := max(0, len(result.failed) - SHOWN) + max(0, len(bad) - SHOWN)) > 0:
        click.echo(f"and {more} lines more", err=True)
