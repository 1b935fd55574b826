"""The commands. Heavy imports stand inside the command that needs them."""

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cacheproxy import __version__, commands
from cacheproxy.errors import ConfigurationError, Trouble
from cacheproxy.settings import Resolved, resolve

if TYPE_CHECKING:
    from cacheproxy.core.calibration import Scored
    from cacheproxy.core.labelled import Pair
    from cacheproxy.core.model import Identity
    from cacheproxy.schema import Settings

_FLAGS = {
    "upstream": "upstreams",
    "host": "listen.host",
    "port": "listen.port",
    "admin_host": "admin.host",
    "admin_port": "admin.port",
    "admin_token": "admin.token",
    "data_dir": "store.data_dir",
    "redis_url": "redis.url",
    "log_level": "telemetry.log_level",
}


def _configured(command: Any) -> Any:
    """The options that every command with a configuration has."""
    for option in reversed([
        click.option("--config", type=click.Path(path_type=Path), help="A YAML file (docs/configuration.md)."),
        click.option("--upstream", multiple=True, metavar="URL", help="A backend; may be given several times."),
        click.option("--host", help="Address of the proxy listener [127.0.0.1]."),
        click.option("--port", type=int, help="Port of the proxy listener [8800]."),
        click.option("--admin-host", help="Address of the admin listener [127.0.0.1]."),
        click.option("--admin-port", type=int, help="Port of the admin listener [8801]."),
        click.option("--admin-token", help="Token for the admin API; better set CACHEPROXY_ADMIN__TOKEN."),
        click.option("--data-dir", help="Where answers are kept [./cacheproxy-data]; 'none': in memory only."),
        click.option("--redis-url", metavar="URL", help="A Redis that all replicas share (redis://, rediss://, …)."),
        click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="[info]"),
    ]):  # fmt: skip
        command = option(command)
    return command


def _resolved(options: dict[str, Any], **otherwise: Any) -> Resolved:
    config = options.pop("config")
    flags = {_FLAGS[name]: value for name, value in options.items() if value not in (None, ())}
    if "upstreams" in flags:
        flags["upstreams"] = list(flags["upstreams"])
    return resolve(flags, config, otherwise=otherwise)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cacheproxy")
def cli() -> None:
    """A caching sidecar between any OpenAI client and any OpenAI-compatible backend.

    \b
    Start it before a backend, then point clients at it:
      cacheproxy serve --upstream http://127.0.0.1:8000
      export OPENAI_BASE_URL=http://127.0.0.1:8800/v1
    """


@cli.command()
@_configured
def serve(**options: Any) -> None:
    """Run the proxy."""
    resolved = _resolved(options)
    from cacheproxy import wiring

    wiring.run(resolved.settings)


@cli.command()
@_configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(as_json: bool, **options: Any) -> None:
    """Show the resolved configuration and where each value comes from; contradictions are errors."""
    from cacheproxy import report

    resolved = _resolved(options)
    rows = report.configuration(resolved)
    if as_json:
        click.echo(json.dumps({"ok": True, "values": rows}, indent=2))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        click.echo(f"{row['name']:<{width}}  {json.dumps(row['value'], ensure_ascii=False)}  ({row['origin']})")
    click.echo("ok")


@cli.command()
@_configured
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool, **options: Any) -> None:
    """Look at everything the proxy needs: each is ok, or what to do is said. Exit code 1 if something is not."""
    from cacheproxy import report

    resolved = _resolved(options)
    logging.disable(logging.CRITICAL)  # the findings say it
    findings = report.examine(resolved.settings)
    ok = all(finding["ok"] for finding in findings)
    if as_json:
        click.echo(json.dumps({"ok": ok, "findings": findings}, indent=2))
    else:
        for finding in findings:
            click.echo(f"{'ok  ' if finding['ok'] else 'FAIL'}  {finding['part']}: {finding['message']}")
    sys.exit(0 if ok else 1)


@cli.command()
@_configured
@click.argument("file", type=click.File("rb"))
@click.option("--path", default="/v1/chat/completions", show_default=True, help="The request target.")
@click.option("--method", default=None, help="[POST, or GET for /v1/models]")
@click.option("-H", "--header", multiple=True, metavar="'NAME: VALUE'", help="A request header; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(file: Any, path: str, method: str | None, header: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Say what would become of a request, whose body is in FILE (`-`: standard input): its key, what normalisation
    changes, and whether a stored answer may serve it. Asks no backend and changes nothing."""
    from cacheproxy import explain as explaining

    resolved = _resolved(options, upstreams=["http://127.0.0.1:8000"])
    verb = method or ("GET" if path.partition("?")[0] == "/v1/models" else "POST")
    told = explaining.explain(resolved.settings, verb.upper(), path, header, file.read())
    if as_json:
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    for name, value in told.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            click.echo(f"{name}:")
            for row in value:
                click.echo("  " + "; ".join(f"{n}: {_brief(v)}" for n, v in row.items()))
        elif isinstance(value, dict):
            click.echo(f"{name}: " + "; ".join(f"{n}: {_brief(v)}" for n, v in value.items()))
        else:
            click.echo(f"{name}: {_brief(value)}")


@cli.command("lint-prompt")
@_configured
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def lint_prompt(file: str, as_json: bool, **options: Any) -> None:
    """Say what in a prompt keeps a backend from reusing its work on it, and which rule mends it. FILE (`-`: standard
    input) is a system prompt, a request body, or several, one on a line. Exit code 1 if something is found that the
    rules of the configuration do not mend."""
    from cacheproxy import lint

    resolved = _resolved(options, upstreams=["http://127.0.0.1:8000"])
    told = lint.lint(resolved.settings, _read(file))
    lines = [json.dumps(told, indent=2)] if as_json else lint.report(told, "-" if file == "-" else Path(file).name)
    for line in lines:
        click.echo(line.encode(sys.stdout.encoding or "utf-8", "replace"))
    sys.exit(0 if told["ok"] else 1)


@cli.command()
@_configured
@click.argument("file", type=click.Path(allow_dash=True), required=False)
@click.option(
    "--max-error",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.01,
    show_default=True,
    help="The share of hits that may be wrong.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="How sure that has to be.",
)
@click.option(
    "--from-log",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="A near-miss log to whose lines a person has added `same`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; a proxy reads it as `semantic.calibration`.")
def tune(
    file: str | None, max_error: float, confidence: float, from_log: str | None, as_json: bool, **options: Any
) -> None:
    """Find the similarity from which on two questions count as one, for the embedder and the guards of the
    configuration. FILE (`-`: standard input) has labelled pairs, one on a line: {"a": "…", "b": "…", "same": true}.
    They should be such as your traffic brings together. Exit code 1 if no threshold keeps to --max-error with them."""
    from cacheproxy.core import advice, labelled
    from cacheproxy.core.calibration import Scored

    resolved = _resolved(options, upstreams=["http://127.0.0.1:8000"])
    if file is None and from_log is None:
        raise click.UsageError("give a FILE of labelled pairs, or --from-log FILE")
    logging.disable(logging.CRITICAL)  # the command says it
    embedder, scored = None, []
    missed = [] if from_log is None else _labelled(labelled.misses, from_log)
    scored += [Scored(miss.same, miss.similarity, miss.passes) for miss in missed if miss.same is not None]
    pairs = [] if file is None else _labelled(labelled.pairs, file)
    if file is not None:
        embedder, found = asyncio.run(_scored(resolved.settings, pairs))
        scored += found
    told = advice.advice(scored, embedder, max_error, confidence, len([miss for miss in missed if miss.same is None]))
    for line in [json.dumps(told, indent=2)] if as_json else advice.lines(told):
        click.echo(line)
    sys.exit(0 if told["ok"] else 1)


for command in commands.ALL:
    cli.add_command(command)


def _brief(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _labelled(reader: Any, file: str) -> Any:
    data = _read(file)
    try:
        return reader(data)
    except ValueError as error:
        raise ConfigurationError(f"{'standard input' if file == '-' else file}, {error}") from None


async def _scored(settings: "Settings", pairs: "list[Pair]") -> "tuple[Identity, list[Scored]]":
    """The embedder that the settings name, and the pairs with what is served of them."""
    from cacheproxy.core.likeness import Guard
    from cacheproxy.core.rules import Opinion
    from cacheproxy.meaning import tuning
    from cacheproxy.wiring import embedding, opinions

    if not embedding.is_installed(settings):
        raise ConfigurationError(f"to embed pairs the extra is needed: {embedding.EXTRA}")
    told = settings.semantic
    guards = frozenset(Guard(name) for name in told.guards)
    verifier = None if told.verifier is Opinion.OFF else opinions.verifier(settings)
    judge = tuning.Judge(guards, verifier, opinions.least(settings))
    try:
        if verifier is not None:
            await verifier.warm()
        embedder = embedding.embedder(settings)
        try:
            await embedder.warm()
            texts = {text for pair in pairs for text in (pair.a, pair.b)}
            with click.progressbar(
                length=len(texts), label="embedding", file=sys.stderr, hidden=not sys.stderr.isatty()
            ) as bar:
                return embedder.identity, await tuning.scored(embedder, judge, pairs, bar.update)
        finally:
            await embedder.close()
            if verifier is not None:
                await verifier.close()
    except Trouble as trouble:
        raise ConfigurationError(str(trouble)) from None


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}") from None


def main() -> None:
    """The ``cacheproxy`` command. Exit code 2: the configuration or the call is wrong, said in one line."""
    try:
        cli(standalone_mode=False)
    except ConfigurationError as error:
        click.echo(f"cacheproxy: {error}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.Abort:
        sys.exit(130)
