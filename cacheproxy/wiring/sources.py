"""Where versions of knowledge bases come from besides the admin API: watched folders, and the stream in Redis."""

import hashlib
from pathlib import Path

from cacheproxy.engine.follower import Follower
from cacheproxy.engine.gate import Gate
from cacheproxy.engine.knowledge import Knowledge
from cacheproxy.engine.watch import Watch
from cacheproxy.ports import Journal, Notices
from cacheproxy.schema import Settings
from cacheproxy.schema.knowledge import WatchSettings
from cacheproxy.stores.folder import Folder


class Sources:
    """All of them. `notices`: the stream that replicas share, if there is one. From the first moment on `gate` is shut
    for what is not known yet."""

    def __init__(
        self, settings: Settings, *, knowledge: Knowledge, gate: Gate, notices: Notices | None, journal: Journal
    ) -> None:
        self._settings = settings
        interval = settings.kb.watch_interval
        self._all: list[Watch | Follower] = [
            Watch(one.name, self._folder(one), knowledge=knowledge, gate=gate, interval=interval)
            for one in settings.kb.watch
        ]
        if notices is not None and settings.kb.events:
            self._all.append(Follower(notices, knowledge=knowledge, gate=gate, journal=journal))

    def start(self) -> None:
        """Begin to look and to listen."""
        for one in self._all:
            one.start()

    async def close(self) -> None:
        """Stop; what is being carried out is carried out anew after the next start."""
        for one in self._all:
            await one.close()

    def _folder(self, one: WatchSettings) -> Folder:
        told, directory = self._settings.kb, self._settings.store.data_dir
        name = hashlib.blake2b(one.name.encode(), digest_size=8).hexdigest()
        memory = None if directory == "none" else Path(directory) / f"kb-{name}.json"
        return Folder(Path(one.path), most_files=told.max_files, most_bytes=told.max_bytes, memory=memory)
