"""What the user of Redis may do with the stream of events, found out without taking an event or making anything.

Each command is tried on a group that does not exist: a server looks at permissions first.
"""

import re
from dataclasses import dataclass

from cacheproxy.errors import Trouble
from cacheproxy.stores.redis_calls import Calls
from cacheproxy.stores.redis_events import STREAM
from cacheproxy.stores.redis_scripts import Script

GRANT = f"+exists +xreadgroup +xautoclaim +xpending +xack +xgroup|create ~{STREAM}"
"""What a user needs for it, in the words of Redis."""
_DENIED = re.compile(r"NOPERM|no permission|can't (?:run|access)|ACL failure", re.IGNORECASE)
_NOBODY = "cacheproxy-doctor"
"""A group that nobody makes."""

TRY = Script(
    """
-- KEYS: the stream. ARGV: a group that does not exist, the group. Replies to each command, errors as texts.
local function try(...)
  local reply = redis.pcall(...)
  return type(reply) == 'table' and reply.err or ''
end
local told = {
  'exists', try('EXISTS', KEYS[1]),
  'xreadgroup', try('XREADGROUP', 'GROUP', ARGV[1], 'x', 'COUNT', 1, 'STREAMS', KEYS[1], '>'),
  'xautoclaim', try('XAUTOCLAIM', KEYS[1], ARGV[1], 'x', 3600000, '0', 'COUNT', 1),
  'xpending', try('XPENDING', KEYS[1], ARGV[1]),
  'xack', try('XACK', KEYS[1], ARGV[1], '0-1'),
  'xgroup|create', try('XGROUP', 'CREATE', KEYS[1], ARGV[1], 'no-id')}
local there = redis.pcall('EXISTS', KEYS[1])
local waiting = redis.pcall('XPENDING', KEYS[1], ARGV[2])
return {told, there, type(waiting) == 'table' and not waiting.err and waiting[1] or -1}
"""
)


@dataclass(frozen=True, slots=True)
class Rights:
    """`denied`: commands that the user may not run; `there`: something lies under the stream's name; `is_stream`: and
    is one, if so; `waiting`: events that a replica was given and has not done, None where none has read it yet."""

    denied: tuple[str, ...]
    there: bool
    is_stream: bool
    waiting: int | None


async def rights(calls: Calls, group: str) -> Rights:
    """What is so behind `calls`. Raises `Trouble`."""
    told, there, waiting = await calls.script(TRY, [STREAM], _NOBODY, group)
    replies = dict(zip(map(_text, told[::2]), map(_text, told[1::2]), strict=True))
    denied = tuple(name for name, reply in replies.items() if _DENIED.search(reply))
    is_stream = not any("WRONGTYPE" in reply for reply in replies.values())
    return Rights(denied, there == 1, is_stream, waiting if waiting >= 0 else None)


def _text(reply: object) -> str:
    if isinstance(reply, bytes):
        return reply.decode("utf-8", "replace")
    raise Trouble("Redis said something else than a text", "protocol")
