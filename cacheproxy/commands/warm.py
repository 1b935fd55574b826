"""``cacheproxy warm``: has a running proxy asked what it is to know."""

import asyncio
import json
import sys
from pathlib import Path

import click

from cacheproxy.core import address
from cacheproxy.errors import ConfigurationError

SHOWN = 20
"""Numbers of lines that are shown at most."""


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--url", default="http://127.0.0.1:8800", show_default=True, help="The proxy.")
@click.option("--api-key", envvar="OPENAI_API_KEY", help="For requests without one of their own [$OPENAI_API_KEY].")
@click.option("--concurrency", type=click.IntRange(1, 256), default=4, show_default=True, help="Requests at once.")
@click.option("--budget-requests", type=click.IntRange(0), metavar="N", help="Most requests that reach the backend.")
@click.option("--budget-tokens", type=click.IntRange(0), metavar="N", help="Stop once the backend counted so many.")
@click.option("--state", type=click.Path(path_type=Path), help="Where it is kept what is done [FILE.state].")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def warm(  # noqa: PLR0913 - the options of the command
    file: str, url: str, api_key: str | None, concurrency: int, budget_requests: int | None,
    budget_tokens: int | None, state: Path | None, *, as_json: bool,
) -> None:  # fmt: skip
    """Ask the proxy every request of FILE, so that it has their answers: with the lowest priority, and again only what
    was not done before. Each line is the body of a chat completion, or {"body": …, "path": …, "headers": …}. Answers
    are kept for the API key that they were asked with. Exit code 1 if a line was no request, or failed."""
    from cacheproxy.commands.progress import Progress
    from cacheproxy.commands.traffic import BadLine, requests
    from cacheproxy.commands.warming import Budget, Warming

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
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    with Progress(state or Path(f"{file}.state")) as progress:
        wanted = [one for one in read if not isinstance(one, BadLine) and one not in progress]
        warming = Warming(base, headers, Budget(budget_requests, budget_tokens), progress)
        with click.progressbar(length=len(wanted), label="warming", file=sys.stderr) as bar:
            asyncio.run(warming.run(wanted, concurrency, bar.update))
    result = warming.result
    done_before = len(read) - len(bad) - len(wanted)
    if as_json:
        told = {
            "asked": result.asked, "present": result.present, "bypassed": result.bypassed, "done_before": done_before,
            "left": result.left, "tokens": result.tokens,
            "failed": [{"line": number, "status": status} for number, status in sorted(result.failed)],
            "bad": [{"line": one.number, "why": one.why} for one in bad],
        }  # fmt: skip
        click.echo(json.dumps(told, indent=2))
    else:
        click.echo(
            f"{result.asked} asked of the backend ({result.tokens} tokens), {result.present} there already, "
            f"{result.bypassed} that are not kept, {done_before} done before, {result.left} left by the budget"
        )
        for number, status in sorted(result.failed)[:SHOWN]:
            click.echo(f"line {number}: {f'answered {status}' if status else 'broke off'}", err=True)
        for one in bad[:SHOWN]:
            click.echo(f"line {one.number}: {one.why}", err=True)
        if (more := max(0, len(result.failed) - SHOWN) + max(0, len(bad) - SHOWN)) > 0:
            click.echo(f"and {more} lines more", err=True)
    sys.exit(1 if result.failed or bad else 0)
