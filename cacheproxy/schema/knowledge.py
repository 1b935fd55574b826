"""What the configuration says of knowledge bases."""

from typing import Self

from pydantic import Field, model_validator

from cacheproxy.schema.kinds import Name, Patience, Size, Switch
from cacheproxy.schema.model import Model


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
    events: Switch = True
    """With Redis: read versions from the stream `cacheproxy:events` too."""

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [one.name for one in self.watch]
        if len(set(names)) < len(names):
            raise ValueError("two folders cannot be one knowledge base: each `name` may stand in `watch` once")
        return self
