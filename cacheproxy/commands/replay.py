"""``cacheproxy replay``: what the requests of a log would have hit."""

import asyncio
import json
import logging
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cacheproxy.errors import ConfigurationError, Trouble

if TYPE_CHECKING:
    from cacheproxy.commands.replaying import Posed, Replaying, Tally
    from cacheproxy.commands.traffic import Asked
    from cacheproxy.schema import Settings

SHOWN = 20


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--config", type=click.Path(path_type=Path), help="A YAML file (docs/configuration.md).")
@click.option("--semantic/--no-semantic", default=None, help="Answers by meaning too [as the configuration says].")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page with a chart.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def replay(file: str, config: Path | None, *, semantic: bool | None, html: Path | None, as_json: bool) -> None:
    """Say what the requests of FILE would have hit, by layer, and what that would have spared. Asks no backend. Each
    line is the body of a chat completion, or {"body": …, "path": …, "headers": …, "time": …, "latency": …,
    "usage": …, "status": …}: with times answers expire, with latency and usage savings are known. Exit code 1 if a
    line is no request."""
    from cacheproxy.commands import chart
    from cacheproxy.commands.replaying import Replaying, Tally
    from cacheproxy.commands.traffic import BadLine, requests
    from cacheproxy.settings import resolve
    from cacheproxy.wiring import embedding

    flags = {} if semantic is None else {"semantic.mode": "on" if semantic else "off"}
    settings = resolve(flags, config, otherwise={"upstreams": ["http://127.0.0.1:8000"]}).settings
    by_meaning = embedding.is_wanted(settings)
    logging.disable(logging.CRITICAL)  # the command says it
    read = list(requests(file))
    bad = [one for one in read if isinstance(one, BadLine)]
    asked = list(_in_order(one for one in read if not isinstance(one, BadLine)))
    replaying, tally = Replaying(settings), Tally()
    posed = [replaying.pose(one) for one in asked]
    if by_meaning:
        asyncio.run(_look_by_meaning(settings, replaying, posed))
    with click.progressbar(posed, label="replaying", file=sys.stderr) as bar:
        for one in bar:
            tally.add(replaying.meet(one))
    told = _told(tally, len(bad), by_meaning=by_meaning, timed=any(one.time is not None for one in asked))
    if html is not None:
        try:
            html.write_text(chart.page(told, tally.course), "utf-8")
        except OSError as error:
            raise ConfigurationError(f"cannot write {html}: {error.strerror}") from None
    for line in [json.dumps(told, indent=2)] if as_json else _lines(told):
        click.echo(line)
    for wrong in bad[:SHOWN]:
        click.echo(f"line {wrong.number}: {wrong.why}", err=True)
    sys.exit(1 if bad else 0)


def _in_order(asked: "Iterable[Asked]") -> "Iterator[Asked]":
    """By their times; one that has none came with the one before it in the file."""
    timed, last = [], None
    for one in asked:
        last = one.time if one.time is not None else last
        timed.append(replace(one, time=last))
    return iter(sorted(timed, key=lambda one: one.time or 0.0))


async def _look_by_meaning(settings: "Settings", replaying: "Replaying", posed: "list[Posed]") -> None:
    """Embed every question, and have like ones found."""
    from cacheproxy.commands.alike import Alike, question_of
    from cacheproxy.meaning import tuning
    from cacheproxy.wiring import embedding, terms

    matching = terms.matching(settings)
    found = [question_of(replaying.binder, matching, one.bound) for one in posed if one.bound is not None]
    texts = {question.text for question in found if question is not None}
    try:
        embedder = embedding.embedder(settings)
        try:
            await embedder.warm()
            with click.progressbar(length=len(texts), label="embedding", file=sys.stderr) as bar:
                vectors = await tuning.vectors(embedder, texts, bar.update)
        finally:
            await embedder.close()
    except Trouble as trouble:
        raise ConfigurationError(f"{trouble}; or say --no-semantic") from None
    replaying.likeness = Alike(replaying.binder, matching, vectors)


def _told(tally: "Tally", bad: int, *, by_meaning: bool, timed: bool) -> dict[str, Any]:
    total = len(tally.course)

    def layer(name: str) -> dict[str, Any]:
        return {"hits": tally.layers[name], "rate": round(tally.layers[name] / total, 4) if total else 0.0}

    exact, semantic = layer("exact"), layer("semantic") if by_meaning else None
    hits = tally.layers["exact"] + tally.layers["semantic"]
    return {
        "requests": total, "bad_lines": bad, "timed": timed, "hit_rate": round(hits / total, 4) if total else 0.0,
        "exact": exact, "semantic": semantic, "misses": dict(tally.misses.most_common()),
        "bypasses": dict(tally.bypasses.most_common()), "tokens": {"saved": tally.tokens, "of": tally.known_tokens},
        "seconds": {"saved": round(tally.seconds, 3), "of": round(tally.known_seconds, 3)},
    }  # fmt: skip


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
