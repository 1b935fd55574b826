"""Commands and scripts to a Redis service: whatever goes wrong comes out as `Trouble`, and what is broken is let go."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from redis.exceptions import NoScriptError

from cacheproxy.errors import Trouble
from cacheproxy.stores.redis_link import Link
from cacheproxy.stores.redis_scripts import Script
from cacheproxy.stores.redis_trouble import Kind, trouble

T = TypeVar("T")

STALE = frozenset({Kind.READONLY, Kind.MASTERDOWN, Kind.PROTOCOL, Kind.MOVED, Kind.NOAUTH})
"""What says that a connection leads to the wrong server, or cannot be trusted: names are resolved anew after it."""


class Calls:
    """What is asked of the service behind `link`."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._redis: Any = link.redis  # its methods are not all typed

    def __repr__(self) -> str:
        return f"<Calls {self.link!r}>"

    async def run(self, *command: Any, **options: Any) -> Any:
        """The reply to one command. Raises `Trouble`."""
        try:
            return await self._redis.execute_command(*command, **options)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is trouble with Redis
            raise await self._told(error) from None

    async def value(self, name: str) -> bytes | None:
        """The value under `name`. Raises `Trouble`."""
        value = await self.run("GET", name)
        if value is None or isinstance(value, bytes):
            return value
        raise await self.distrust("something that is no value")

    async def script(self, script: Script, keys: Sequence[str], *arguments: str | bytes | int) -> Any:
        """What `script` returns. Raises `Trouble`."""
        try:
            try:
                return await self._redis.execute_command("EVALSHA", script.sha, len(keys), *keys, *arguments)
            except NoScriptError:
                # A server that is new, or was emptied; it knows the script from then on.
                return await self._redis.execute_command("EVAL", script.text, len(keys), *keys, *arguments)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is trouble with Redis
            raise await self._told(error) from None

    async def scripts(self, asked: Sequence[tuple[Script, Sequence[str], Sequence[str | bytes | int]]]) -> list[Any]:
        """What scripts return that are sent at once, each with its keys and arguments; in place of what one returns the
        `Trouble` that it ended in. Raises `Trouble` if all did."""
        if len(asked) == 1:
            return [await self.script(script, keys, *arguments) for script, keys, arguments in asked]
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                for script, keys, arguments in asked:
                    pipeline.execute_command("EVALSHA", script.sha, len(keys), *keys, *arguments)
                replies: list[Any] = await pipeline.execute(raise_on_error=False)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is trouble with Redis
            raise await self._told(error) from None
        for at, (script, keys, arguments) in enumerate(asked):
            try:
                if isinstance(replies[at], NoScriptError):
                    replies[at] = await self.script(script, keys, *arguments)
                elif isinstance(replies[at], Exception):
                    replies[at] = await self._told(replies[at])
            except Trouble as trouble:
                replies[at] = trouble
        return replies

    async def together(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The replies to commands that are sent at once, one after the other. Raises `Trouble` if any failed."""
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                replies: list[Any] = await pipeline.execute()
                return replies
        except Exception as error:  # noqa: BLE001 - whatever it is, it is trouble with Redis
            raise await self._told(error) from None

    async def understood(self, read: Callable[[], T]) -> T:
        """What `read` makes of a reply. Raises `Trouble` if the reply has another shape than it reads."""
        try:
            return read()
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError):
            raise await self.distrust("not the reply to what was asked") from None

    async def distrust(self, why: str) -> Trouble:
        """A reply cannot be what was asked for: no connection that is open now is used again."""
        await self.link.drop()
        return Trouble(why, Kind.PROTOCOL)

    async def _told(self, error: Exception) -> Trouble:
        told = error if isinstance(error, Trouble) else trouble(error)
        if told.kind in STALE:
            await self.link.drop()
        return told
