"""``cacheproxy kb``: tells a running proxy of a new version of a knowledge base, and asks which are current."""

import json
import time
from urllib.parse import quote

import click

from cacheproxy.commands import desk


@click.group()
def kb() -> None:
    """Versions of knowledge bases."""


@kb.command("set")
@click.argument("name")
@click.argument("version")
@click.option("--document", "documents", multiple=True, metavar="ID", help="A document that changed; may be repeated.")
@click.option("--sequence", type=click.IntRange(0), help="The number of this version: a smaller one is older.")
@desk.options
def set_version(  # noqa: PLR0913 - the options of the command
    name: str, version: str, documents: tuple[str, ...], sequence: int | None, admin_url: str,
    admin_token: str | None, *, as_json: bool,
) -> None:  # fmt: skip
    """NAME has VERSION from now on. When the command returns with 0, no replica serves an answer of another version;
    with --document those fall that name one of these documents, or none."""
    document: dict[str, object] = {"version": version}
    if documents:
        document["changed_documents"] = list(documents)
    if sequence is not None:
        document["sequence"] = sequence
    told = desk.call(admin_url, admin_token, "PUT", f"/admin/kb/{quote(name, safe='')}", document, has="course")
    if as_json:
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    click.echo(f"{told['name']} is at {told['version']} ({told['course']}): {told['purged']} answers removed")


@kb.command("list")
@desk.options
def list_versions(admin_url: str, admin_token: str | None, *, as_json: bool) -> None:
    """Which versions are current."""
    told = desk.call(admin_url, admin_token, "GET", "/admin/kb", has="kb")
    if as_json:
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    for row in told["kb"]:
        number = "" if row["sequence"] is None else f"  number {row['sequence']}"
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(row["published_at"]))
        unsettled = "" if row["settled"] else "  not in force everywhere yet: set it again"
        click.echo(f"{row['name']}  {row['version']}{number}  since {since}{unsettled}")
