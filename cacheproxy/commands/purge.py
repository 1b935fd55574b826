"""``cacheproxy purge``: removes stored answers from a running proxy, and so from all replicas."""

import json
import sys
from collections.abc import Callable
from typing import Any

import click

from cacheproxy.commands import desk
from cacheproxy.core import quantities
from cacheproxy.core.removal import CONFIRMATION


def _age(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    found = None if value is None else quantities.duration(value)
    if isinstance(found, str):
        raise click.BadParameter(found)
    return found


_SELECTING = (
    click.option("--tag", "tags", multiple=True, help="Answers with this label; may be repeated: any of them."),
    click.option(
        "--kb", multiple=True, metavar="NAME", help="Answers that rest on this knowledge base; NAME@VERSION too."
    ),
    click.option("--model", help="Answers of this model."),
    click.option("--namespace", help="Answers in this namespace."),
    click.option("--id", "entry_ids", multiple=True, help="The answer with this id (X-Cache-Entry-Id)."),
    click.option(
        "--older-than", callback=_age, metavar="AGE", help="Answers older than this: seconds, or 30s, 5m, 2h."
    ),
    click.option(
        "--document",
        "changed_documents",
        multiple=True,
        metavar="NAME",
        help="Spare answers that name their documents, and none of these.",
    ),
    click.option(
        "--prefix",
        multiple=True,
        metavar="ID",
        help="Answers to prompts of this family (/admin/prefixes, /admin/entries), as after a new system prompt.",
    ),
    click.option(
        "--scope",
        multiple=True,
        metavar="ID",
        help="All answers of one caller: `scope` or `credential` in /admin/entries. Waits until they are erased.",
    ),
)
"""What says which answers are meant."""


def _selecting(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_SELECTING):
        command = option(command)
    return command


@click.command()
@_selecting
@click.option("--all", "everything", is_flag=True, help="Every answer.")
@click.option("--soft", is_flag=True, help="Do not remove them: they are past their lifetime from now on.")
@click.option("--wait/--no-wait", default=None, help="Whether to wait until they have left the store and the disk.")
@click.option("--dry-run", is_flag=True, help="Only count them.")
@click.option("--yes", is_flag=True, help="Do not ask before everything is removed.")
@desk.options
def purge(  # noqa: PLR0913 - the options of the command
    *, everything: bool, soft: bool, dry_run: bool, yes: bool, wait: bool | None,
    admin_url: str, admin_token: str | None, as_json: bool,
    **told: Any,
) -> None:  # fmt: skip
    """Remove stored answers: those for which everything holds that is stated. When the command returns with 0, none of
    them is served any more, by any replica.

    \b
    cacheproxy purge --tag faq
    cacheproxy purge --kb handbook --older-than 2h --dry-run
    cacheproxy purge --scope 0123456789abcdef0123456789abcdef
    """
    selector = {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}
    selector = {name: value for name, value in selector.items() if value not in (None, [])}
    if everything == bool(selector):
        raise click.UsageError("say which answers: --all alone, or at least one of the others")
    document: dict[str, object] = {"selector": selector, "mode": "soft" if soft else "hard", "dry_run": dry_run}
    if wait is None and selector.get("scope"):
        wait = True  # who erases wants to know that it is done
    if wait is not None:
        document["wait"] = wait
    if everything:
        document["selector"] = {"all": True}
        if not dry_run:
            _confirm(yes=yes)
            document["confirm"] = CONFIRMATION
    done = desk.call(admin_url, admin_token, "POST", "/admin/purge", document, has="purged")
    if as_json:
        click.echo(json.dumps(done, indent=2))
    elif dry_run:
        click.echo(f"{done['matched']} answers are meant")
    elif done["purged"] is None:
        click.echo(f"what is meant is {'stale' if soft else 'gone'}; it is not counted yet")
    else:
        click.echo(f"{done['purged']} answers {'made stale' if soft else 'removed'}")


def _confirm(*, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("--all needs --yes where nobody can be asked")
    click.confirm("Remove every stored answer?", abort=True, err=True)
