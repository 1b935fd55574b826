"""``cacheproxy import``: has a running proxy take what ``cacheproxy export`` wrote."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import IO, Any

import click

from cacheproxy.commands import desk
from cacheproxy.errors import ConfigurationError

LEFT = {
    "present": "here already", "older": "older than what is here", "expired": "expired", "purged": "purged since",
    "other_version": "of another version of a knowledge base", "too_large": "too large", "failed": "failed",
    "bad": "unreadable lines",
}  # fmt: skip
"""What is said of the answers that were not taken."""


@click.command("import")
@click.argument("file", type=click.Path(allow_dash=True))
@click.option(
    "--force", is_flag=True, help="Take also what is older than the proxy's record of purges: you vouch for it."
)
@desk.options
def take_in(file: str, admin_url: str, admin_token: str | None, *, force: bool, as_json: bool) -> None:
    """Have a proxy take the answers of FILE (`-`: standard input), which `cacheproxy export` wrote. It leaves out what
    expired, what it has as new itself, and what was purged since it was asked for. Where its record of purges does not
    reach back so far it cannot tell, and leaves the answer out, unless --force is given. Both proxies need the same
    secret (store.secret_file) and the same backends (or store.realm). Exit code 1 if something was left out that could
    not be told, read or stored, or FILE was cut.

    \b
    cacheproxy export - | cacheproxy import - --admin-url http://other-host:8801 --force
    """
    url, headers = desk.reach(admin_url, admin_token)
    try:
        told = (
            _sent(url, headers, sys.stdin.buffer, None, force=force)
            if file == "-"
            else _opened(url, headers, Path(file), force=force)
        )
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}") from None
    click.echo(json.dumps(told, indent=2) if as_json else _summary(told))
    problems = _problems(told)
    for problem in problems:
        click.echo(f"cacheproxy: {problem}", err=True)
    sys.exit(1 if problems else 0)


def _opened(url: str, headers: dict[str, str], path: Path, *, force: bool) -> Any:
    with path.open("rb") as opened:
        return _sent(url, headers, opened, path.stat().st_size or None, force=force)


def _sent(url: str, headers: dict[str, str], file: IO[bytes], size: int | None, *, force: bool) -> Any:
    from cacheproxy.commands import haul

    query = {"force": "yes" if force else "no"}
    with click.progressbar(
        length=size or 0, label="importing", file=sys.stderr, hidden=size is None or not sys.stderr.isatty()
    ) as bar:
        try:
            return asyncio.run(haul.send(url, headers, query, file, bar.update))
        except haul.Refused as refused:
            desk.refused(url, refused.status, refused.told)
        except ConnectionError:
            click.echo(f"cacheproxy: {url} broke off; import again: what it has already is passed over", err=True)
            sys.exit(1)


def _summary(told: dict[str, Any]) -> str:
    embedded = told["questions_embedded"]
    questions = told["questions_kept"] + told["questions_known"] + embedded
    text = f"{told['imported']} answers imported"
    text += "".join(f", {told[name]} {words}" for name, words in LEFT.items() if told[name])
    text += f"; {questions} questions" + (f" ({embedded} embedded anew)" if embedded else "")
    left = told["questions_left_out"]
    return text + (f", {left} left out, whose answers are not found by meaning" if left else "")


def _problems(told: dict[str, Any]) -> list[str]:
    found = []
    if not told["complete"]:
        found.append("the file is not whole: its last line is missing, or it has other counts")
    if told["unproven"]:
        since = told["known_since"]
        known = "no purges of before" if since is None else f"all purges since {_time(since)}"
        found.append(
            f"{told['unproven']} answers left out: the proxy knows of {known}, and they were asked for earlier; if "
            "none of them was purged, import again with --force"
        )
    if told["failed"]:
        found.append(f"{told['failed']} answers could not be stored; import again")
    found += [f"line {bad['line']} {bad['why']}" for bad in told["bad_lines"]]
    return found


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
