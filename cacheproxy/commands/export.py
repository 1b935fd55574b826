"""``cacheproxy export``: writes what a running proxy has stored to a file, for ``cacheproxy import``."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from cacheproxy.commands import desk
from cacheproxy.errors import ConfigurationError

if TYPE_CHECKING:
    from cacheproxy.core.parcel import End

Told = Callable[[int], object]


@click.command()
@click.argument("file", type=click.Path(allow_dash=True), default="-")
@click.option("--tag", help="Answers with this label.")
@click.option("--kb", metavar="NAME", help="Answers that rest on this knowledge base; NAME@VERSION too.")
@click.option("--model", help="Answers of this model.")
@click.option("--namespace", help="Answers in this namespace.")
@desk.options
def export(file: str, admin_url: str, admin_token: str | None, *, as_json: bool, **told: str | None) -> None:
    """Write stored answers, and the questions that they are found by, to FILE (`-`, the usual: standard output), a line
    each: all, or those for which everything holds that is stated. FILE holds what callers were told: keep it as
    safe as that. Exit code 1 if it is not whole.

    \b
    cacheproxy export --kb handbook handbook.ndjson
    cacheproxy import handbook.ndjson --admin-url http://other-host:8801
    """
    if file == "-" and as_json:
        raise click.UsageError("--json needs a FILE: standard output has the lines")
    url, headers = desk.reach(admin_url, admin_token)
    query = {name: value for name, value in told.items() if value is not None}
    if file == "-":
        end = _fetched(url, headers, query, sys.stdout.buffer, quiet=False)
        sys.stdout.buffer.flush()
    else:
        end = _kept(Path(file), lambda out: _fetched(url, headers, query, out, quiet=False))
    if end is None:
        click.echo("cacheproxy: the export broke off: it is not whole; export again", err=True)
        sys.exit(1)
    if as_json:
        click.echo(json.dumps({"file": file, "entries": end.entries, "questions": end.questions}, indent=2))
    else:
        click.echo(f"{end.entries} answers, {end.questions} of them with their questions", err=file == "-")


def _kept(path: Path, write: Callable[[IO[bytes]], "End | None"]) -> "End | None":
    """Write the file, for the owner's eyes; what was there stays until the new one is whole."""
    part = path.with_name(f"{path.name}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            end = write(out)
            out.flush()
            os.fsync(out.fileno())
        if end is None:
            part.unlink()
        else:
            part.replace(path)
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}") from None
    return end


def _fetched(url: str, headers: dict[str, str], query: dict[str, str], out: IO[bytes], *, quiet: bool) -> "End | None":
    """Write the lines; the last one, None if it did not come."""
    from cacheproxy.commands import haul
    from cacheproxy.core import parcel

    last = [b""]

    def line(one: bytes) -> None:
        out.write(one)
        if not last[0] and isinstance(head := parcel.read_head(one), parcel.Head):
            bar.length = head.about
        bar.update(1 if last[0] else 0)
        last[0] = one

    hidden = quiet or not sys.stderr.isatty()
    with click.progressbar(length=1, label="exporting", file=sys.stderr, hidden=hidden) as bar:
        try:
            asyncio.run(haul.fetch(url, headers, query, line))
        except haul.Refused as refused:
            desk.refused(url, refused.status, refused.told)
        except ConnectionError:
            return None
    end: Any = parcel.read(last[0])
    return end if isinstance(end, parcel.End) else None
