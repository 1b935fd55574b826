"""One connection to a Redis. It is made whole or not at all, within one deadline, and never by a command; it knows
whether it owes somebody an answer, so that nobody else is ever given that answer."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.credentials import CredentialProvider
from redis.exceptions import ConnectionError as BrokenError
from redis.exceptions import InvalidResponse, NoPermissionError, ReadOnlyError, RedisError, ResponseError
from redis.exceptions import TimeoutError as SlowError

from cacheproxy.deadline import Deadline
from cacheproxy.errors import Trouble
from cacheproxy.stores.redis_dial import Dial

_LONGEST_PASSWORD = 64 * 1024


class FileCredentials(CredentialProvider):
    """The password that a file holds when a connection is made, so that a new one needs no restart."""

    def __init__(self, path: str, username: str | None) -> None:
        self._path = Path(path)
        self._username = username

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        try:
            with self._path.open(encoding="utf-8") as file:
                password = file.read(_LONGEST_PASSWORD).rstrip("\r\n")
        except (OSError, UnicodeDecodeError):
            raise Trouble("the file with Redis's password cannot be read", "noauth") from None
        if not password:
            raise Trouble("the file with Redis's password is empty", "noauth")
        return (self._username, password) if self._username else (password,)

    async def get_credentials_async(self) -> tuple[str] | tuple[str, str]:
        return self.get_credentials()


class Wire(AbstractConnection):
    """A connection over the streams that `dial` gives, made within `deadline` seconds; `primary`: only to a primary."""

    def __init__(self, *, dial: Dial, deadline: float, primary: bool = False, **options: Any) -> None:
        self._dial = dial
        self._deadline = deadline
        self._primary = primary
        self._owed = 0
        self.age = 0
        """Of which age of its pool it is."""
        super().__init__(**options)

    def repr_pieces(self) -> list[tuple[str, object]]:
        return [("connected", self.is_connected), ("owed", self._owed)]

    def _host_error(self) -> str:
        return "Redis"

    # Its life

    async def connect(self) -> None:
        """Connect, log in and choose the database. Whatever ends it early, a cancellation too, leaves it closed."""
        if self.is_connected:
            return
        patience, self.socket_timeout = self.socket_timeout, None  # here the deadline is for all of it
        try:
            async with Deadline(self._deadline):
                self._reader, self._writer = await self._dial()
                await self.on_connect_check_health(check_health=False)
                if self._primary:
                    await self._demand_primary()
                for callback in [made for reference in self._connect_callbacks if (made := reference())]:
                    await callback(self)
        except BaseException as error:
            self.abort()
            if (meant := _meant(error)) is error:
                raise
            raise meant from error
        finally:
            self.socket_timeout = patience

    async def connect_check_health(self, check_health: bool = True, retry_socket_connect: bool = True) -> None:  # noqa: ARG002, FBT002
        await self.connect()

    async def _connect(self) -> None:
        raise NotImplementedError  # `connect` is whole

    async def _demand_primary(self) -> None:
        await self.send_command("ROLE")
        try:
            role = await self.read_response()
        except NoPermissionError:
            return  # an older list of permissions; a write shows it
        if not role or role[0] not in (b"master", "master"):
            raise ReadOnlyError("not the primary")

    def abort(self) -> None:
        """Close at once, without a word to the server."""
        writer, self._reader, self._writer = self._writer, None, None
        self._owed = 0
        self._parser.on_disconnect()  # type: ignore[no-untyped-call]
        self._should_reconnect = False
        if writer is not None:
            writer.transport.abort()

    async def disconnect(self, *_: object, **__: object) -> None:
        self.abort()

    async def clean(self) -> bool:
        """Whether it can carry another's command: open, no answer owed, nothing unread. Never waits."""
        if self._reader is None or self._writer is None or self._owed or self._writer.is_closing():
            return False
        try:
            return not await self.can_read()
        except (RedisError, OSError):
            return False

    # Commands

    def pack_command(self, *args: Any) -> list[bytes]:
        packed = super().pack_command(*args)
        self._owed += 1
        return packed

    async def send_packed_command(self, command: bytes | str | Iterable[bytes], check_health: bool = True) -> None:  # noqa: ARG002, FBT002
        if self._writer is None:
            raise BrokenError("not connected")
        pieces = (
            [command.encode() if isinstance(command, str) else command] if isinstance(command, bytes | str) else command
        )
        try:
            async with Deadline(self.socket_timeout):
                self._writer.writelines(pieces)
                await self._writer.drain()
        except BaseException as error:
            self.abort()
            if (meant := _meant(error)) is error:
                raise
            raise meant from error

    async def read_response(self, *args: Any, **options: Any) -> Any:
        told = args[1:] or options.get("timeout") is not None
        try:
            if told:
                response = await super().read_response(*args, **options)
            else:
                async with Deadline(self.socket_timeout):
                    response = await super().read_response(*args, **{**options, "timeout": math.inf})
        except TimeoutError as error:
            raise SlowError("it took too long") from error
        except ResponseError:
            self._owed -= 1
            raise
        self._owed -= 1
        return response


def _meant(error: BaseException) -> BaseException:
    """The exception of redis-py's that a failure is; its own, ours and a cancellation are themselves."""
    if isinstance(error, RedisError | Trouble) or not isinstance(error, Exception):
        return error
    if isinstance(error, TimeoutError):
        return SlowError("it took too long")
    return (
        BrokenError("the connection failed") if isinstance(error, OSError) else InvalidResponse("not Redis's protocol")
    )
