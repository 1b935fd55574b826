"""What must happen in Redis in one step, as scripts.

A *head* is the text ``<generation> <count>``: 16 hex digits drawn when it was begun, and the number of removals since. A
line of the log is ``<count> <ms since the epoch, by the server's clock> <notice>``.
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
  local generation, count = string.match(head, '^(%x+) (%d+)$')
  return generation, tonumber(count)
end
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
"""

CATCH_UP = Script(
    _SPLIT
    + """
-- KEYS: head, log, secret. ARGV: generation and count known, a fresh generation, a secret or nothing, ms to live.
local generation, count = split(redis.call('GET', KEYS[1]))
if not generation or (generation == ARGV[1] and count < tonumber(ARGV[2])) then
  -- Emptied, or set back to an older state: what is there now may have been removed once.
  generation, count = ARGV[3], 0
  redis.call('SET', KEYS[1], generation .. ' 0', 'PX', ARGV[5])
  redis.call('DEL', KEYS[2])
end
if ARGV[4] ~= '' then redis.call('SET', KEYS[3], ARGV[4], 'NX', 'PX', ARGV[5]) end
local missed = 0
if generation == ARGV[1] then missed = count - tonumber(ARGV[2]) end
local log = {}
if missed > 0 then log = redis.call('LRANGE', KEYS[2], -missed, -1) end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[5]) end
return {generation, count, redis.call('GET', KEYS[3]), log, now()}
"""
)

ANNOUNCE = Script(
    _SPLIT
    + """
-- KEYS: head, log. ARGV: a fresh generation, the notice, entries of the log to keep, ms to live, a channel.
local generation, count = split(redis.call('GET', KEYS[1]))
if not generation then
  generation, count = ARGV[1], 0
  redis.call('DEL', KEYS[2])
end
count = count + 1
redis.call('SET', KEYS[1], string.format('%s %d', generation, count), 'PX', ARGV[4])
redis.call('RPUSH', KEYS[2], string.format('%d %d ', count, now()) .. ARGV[2])
redis.call('LTRIM', KEYS[2], -tonumber(ARGV[3]), -1)
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('PUBLISH', ARGV[5], string.format('%s %d', generation, count))
return {generation, count}
"""
)

RAISE = Script(
    _SPLIT
    + """
-- KEYS: the head of another shard. ARGV: generation, count, ms to live.
local generation, count = split(redis.call('GET', KEYS[1]))
if generation ~= ARGV[1] or count < tonumber(ARGV[2]) then
  redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
else
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 1
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
