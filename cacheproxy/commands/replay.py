"""``cacheproxy replay``: what the requests of a log would have hit."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cacheproxy.errors import ConfigurationError, Trouble

if TYPE_CHECKING:
    from cacheproxy.engine.replaying import Tally
    from cacheproxy.engine.traffic import Line
    from cacheproxy.schema import Settings


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--config", type=click.Path(path_type=Path), help="A YAML file (docs/configuration.md).")
@click.option("--semantic/--no-semantic", default=None, help="Answers by meaning too [as the configuration says].")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page with a chart.")
@click.option("--png", type=click.Path(path_type=Path), metavar="FILE", help="Write the chart as a picture.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def replay(  # noqa: PLR0913 - the options of the command
    file: str, config: Path | None, *, semantic: bool | None, html: Path | None, png: Path | None, as_json: bool
) -> None:  # fmt: skip
    """Say what the requests of FILE would have hit, by layer, and what that would have spared. Asks no backend. Each
    line is the body of a chat completion, or {"body": …, "path": …, "headers": …, "time": …, "latency": …,
    "usage": …, "status": …}: with times answers expire, with latency and usage savings are known. Exit code 1 if a
    line is no request.

    \b
    Yesterday's traffic, with a chart of the share that would have been answered:
      cacheproxy replay traffic.jsonl --html replay.html
    """
    from cacheproxy.commands import chart, picture
    from cacheproxy.commands.traffic import SHOWN, requests
    from cacheproxy.engine.replaying import plain
    from cacheproxy.engine.traffic import BadLine
    from cacheproxy.settings import resolve
    from cacheproxy.wiring import embedding

    flags = {} if semantic is None else {"semantic.mode": "on" if semantic else "off"}
    settings = resolve(flags, config, otherwise={"upstreams": ["http://127.0.0.1:8000"]}).settings
    by_meaning = embedding.is_wanted(settings)
    logging.disable(logging.CRITICAL)  # the command says it
    read = list(requests(file))
    bad = [one for one in read if isinstance(one, BadLine)]
    lines = [one for one in read if not isinstance(one, BadLine)]
    tally = asyncio.run(_replayed(settings, lines, by_meaning=by_meaning))
    told = plain(tally, len(bad), by_meaning=by_meaning, timed=any(one.time is not None for one in lines))
    if html is not None:
        _write(html, chart.page(told, tally.course).encode())
    if png is not None:
        _write(png, picture.png(tally.course))
    for line in [json.dumps(told, indent=2)] if as_json else _lines(told):
        click.echo(line)
    for wrong in bad[:SHOWN]:
        click.echo(f"line {wrong.number}: {wrong.why}", err=True)
    if len(bad) > SHOWN:
        click.echo(f"and {len(bad) - SHOWN} lines more", err=True)
    sys.exit(1 if bad else 0)


async def _replayed(settings: "Settings", lines: "list[Line]", *, by_meaning: bool) -> "Tally":
    from cacheproxy.engine.replaying import replay
    from cacheproxy.wiring import embedding
    from cacheproxy.wiring.imagined import alike, imagined, matching

    with ExitStack() as bars:

        def starts(what: str, number: int) -> Callable[[int], object]:
            bars.close()
            return bars.enter_context(click.progressbar(length=number, label=what, file=sys.stderr)).update

        if not by_meaning:
            return await replay(imagined(settings), lines, starts=starts)
        try:
            embedder = embedding.embedder(settings)
            try:
                await embedder.warm()
                chosen = embedding.threshold(settings, embedding.calibration(settings), embedder.identity)
                likens = partial(alike, told=matching(settings, chosen), embedder=embedder, starts=starts)
                return await replay(imagined(settings), lines, likens, starts=starts)
            finally:
                await embedder.close()
        except Trouble as trouble:
            raise ConfigurationError(f"{trouble}; or say --no-semantic") from None


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}") from None


def _lines(told: dict[str, Any]) -> Iterator[str]:
    yield f"{told['requests']} requests, {told['hit_rate']:.1%} answered from the cache"
    yield f"  exact     {told['exact']['hits']:>8}  {told['exact']['rate']:.1%}"
    if told["semantic"] is not None:
        yield f"  semantic  {told['semantic']['hits']:>8}  {told['semantic']['rate']:.1%}"
    for kind in ("misses", "bypasses"):
        for reason, count in told[kind].items():
            yield f"  {'miss' if kind == 'misses' else 'bypass'}: {reason}  {count}"
    if told["tokens"]["of"]:
        yield f"{told['tokens']['saved']} of {told['tokens']['of']} tokens spared"
    if told["seconds"]["of"]:
        yield f"{told['seconds']['saved']:g} of {told['seconds']['of']:g} seconds of the backend spared"
    if not told["timed"]:
        yield "the log has no times: nothing expired"
