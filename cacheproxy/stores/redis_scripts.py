"""What must happen in Redis in one step, as scripts.

A *head* is the text ``<generation> <count> <server>``: 16 hex digits drawn when it was begun, the number of removals
since, and 8 hex digits of the server that wrote it: its process, not its place. A line of the log is
``<count> <ms since the epoch, by the server's clock> <notice>``.
"""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Script:
    """A script, known to the server by its SHA-1 digest."""

    text: str

    @property
    def sha(self) -> str:
        return hashlib.sha1(self.text.encode()).hexdigest()  # noqa: S324 - the server's own name for it


_SPLIT = """
local function split(head)
  if not head then return nil end
  local generation, count, server = string.match(head, '^(%x+) (%d+) (%x+)$')
  return generation, tonumber(count), server
end
local function me()
  return string.sub(string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') or '0', 1, 8)
end
local function write(key, generation, count, ms)
  redis.call('SET', key, string.format('%s %d %s', generation, tonumber(count), me()), 'PX', ms)
end
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
"""

_BEGIN = (
    _SPLIT
    + """
-- What is there now may have been removed once, if the head is gone or older than known, or if this server is not the
-- one that wrote it: it may have been started with what it held earlier, or have followed from afar.
local function standing(generation, count)
  local here, counted, server = split(redis.call('GET', KEYS[1]))
  if here and server == me() and (here ~= generation or counted >= tonumber(count)) then return here, counted end
end
"""
)

CATCH_UP = Script(
    _BEGIN
    + """
-- KEYS: head, log, secret. ARGV: generation and count known, a fresh generation, a secret or nothing, ms to live.
local generation, count = standing(ARGV[1], ARGV[2])
if not generation then
  generation, count = ARGV[3], 0
  write(KEYS[1], generation, count, ARGV[5])
  redis.call('DEL', KEYS[2])
end
if ARGV[4] ~= '' and redis.call('EXISTS', KEYS[3]) == 0 then redis.call('SET', KEYS[3], ARGV[4], 'PX', ARGV[5]) end
local missed = 0
if generation == ARGV[1] then missed = count - tonumber(ARGV[2]) end
local log = {}
if missed > 0 then log = redis.call('LRANGE', KEYS[2], -missed, -1) end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[5]) end
return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[3]), log, now()}
"""
)

ANNOUNCE = Script(
    _BEGIN
    + """
-- KEYS: head, log. ARGV: generation and count known, a fresh generation, the notice, entries of the log to keep, ms to
-- live, a channel.
local generation, count = standing(ARGV[1], ARGV[2])
if not generation then
  generation, count = ARGV[3], 0
  redis.call('DEL', KEYS[2])
end
count = count + 1
write(KEYS[1], generation, count, ARGV[6])
redis.call('RPUSH', KEYS[2], string.format('%d %d ', count, now()) .. ARGV[4])
redis.call('LTRIM', KEYS[2], -tonumber(ARGV[5]), -1)
redis.call('PEXPIRE', KEYS[2], ARGV[6])
redis.call('PUBLISH', ARGV[7], string.format('%s %d', generation, count))
return {generation, count}
"""
)

RAISE = Script(
    _SPLIT
    + """
-- KEYS: the head of another shard. ARGV: generation and count to have, the least count to be there (-1: there need be
-- no head), ms to live. Gives the head, or nothing if what this shard holds may be older than what it was told.
local generation, count, server = split(redis.call('GET', KEYS[1]))
local least = tonumber(ARGV[3])
if generation == ARGV[1] and (server ~= me() or count < least) then return nil end
if not generation and least >= 0 then return nil end
if generation ~= ARGV[1] or count < tonumber(ARGV[2]) then
  write(KEYS[1], ARGV[1], ARGV[2], ARGV[4])
else
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return redis.call('GET', KEYS[1])
"""
)

PUT = Script(
    """
-- KEYS: head, entry. ARGV: the head that it must be, the value, when it expires (ms since the epoch).
local head = redis.call('GET', KEYS[1])
if head ~= ARGV[1] then return head end
redis.call('SET', KEYS[2], ARGV[2], 'PXAT', ARGV[3])
return 1
"""
)

EXCHANGE = Script(
    """
-- KEYS: entry. ARGV: the SHA-1 of the value that it must be, the value to be, when it expires (ms since the epoch).
local value = redis.call('GET', KEYS[1])
if not value or redis.sha1hex(value) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PXAT', ARGV[3])
return 1
"""
)
