"""What the configuration says of knowledge bases."""

from typing import Self

from pydantic import Field, model_validator

from cacheproxy.core.extraction import Into
from cacheproxy.schema.kinds import Expression, Name, Patience, Pointer, Size, Switch
from cacheproxy.schema.model import Model


class ExtractSettings(Model):
    into: Into
    """What the names are of: documents (the labels `doc:<name>`), labels, or knowledge bases (`name` or
    `name@version`)."""
    pointer: Pointer | None = None
    """A JSON pointer into the body, `*` for every element of a list; without it all of the body. The names are what
    stands there: a text, a whole number or a list of these."""
    pattern: Expression | None = None
    """A regular expression as RE2 reads it: the names are what its group matches in the texts there; without a group
    all that it matches."""

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if self.pointer is None and self.pattern is None:
            raise ValueError("say where the names stand: `pointer`, `pattern` or both")
        return self


class WatchSettings(Model):
    name: Name
    """The knowledge base, as requests and backends call it."""
    path: Name
    """A folder, or a file. Names in it that begin with a dot do not count."""


class KbSettings(Model):
    watch: tuple[WatchSettings, ...] = ()
    """Folders and files that are knowledge bases: what changes in one is a new version of it, and the files that
    changed are its changed documents, by their path in it."""
    watch_interval: Patience = 2.0
    """How often they are looked at. A content counts when two looks find the same."""
    max_files: int = Field(default=100_000, ge=1)
    """Most files of one folder; with more it is not watched."""
    max_bytes: Size = 4 * 2**30
    """Most bytes of one folder."""
    extract: tuple[ExtractSettings, ...] = ()
    """Where requests name in their bodies what their answers rest on."""
    extract_bytes: Size = 2**20
    """Most bytes of a request in which `pattern`s are looked for. What is larger is not looked up, nor kept
    (`unnamed_dependency`): other callers wait while it is searched."""
    events: Switch = True
    """With Redis: read versions from the stream `cacheproxy:events` too."""

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [one.name for one in self.watch]
        if len(set(names)) < len(names):
            raise ValueError("two folders cannot be one knowledge base: each `name` may stand in `watch` once")
        return self
