"""What must happen in Redis in one step, as scripts.

A *head* is the text ``<generation> <count> <server>``: 16 hex digits drawn when it was begun, the number of removals
since, and 8 hex digits of the server that wrote it: its process, not its place. A line of the log is
``<count> <ms since the epoch, by the server's clock> <notice>``; the first one of all has no notice. What is *open* is
a hash: the count of a removal whose entries may still be there -> ``<count> <ms> <owner> <notice>``, who takes them out
and since when; and its generation, lest it be lost unnoticed.
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
-- KEYS: head, log, open, secret. What is there now may have been removed once, if the head is gone or older than known,
-- or if this server is not the one that wrote it: it may have been started with what it held earlier, or have followed
-- from afar; or if it is not known what is open.
local function standing(generation, count)
  local here, counted, server = split(redis.call('GET', KEYS[1]))
  if not here or redis.call('HGET', KEYS[3], 'generation') ~= here then return nil end
  if server == me() and (here ~= generation or counted >= tonumber(count)) then return here, counted end
end
local function begin(generation, ms)
  write(KEYS[1], generation, 0, ms)
  redis.call('DEL', KEYS[2], KEYS[3])
  redis.call('RPUSH', KEYS[2], string.format('0 %d -', now()))
  redis.call('HSET', KEYS[3], 'generation', generation)
end
local function state(generation, count, known, known_count, ms)
  local missed = 0
  if generation == known then missed = count - tonumber(known_count) end
  local log = {}
  if missed > 0 then log = redis.call('LRANGE', KEYS[2], -missed, -1) end
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ms) end
  return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[4]), log, now(), redis.call('HVALS', KEYS[3])}
end
"""
)

CATCH_UP = Script(
    _BEGIN
    + """
-- ARGV: generation and count known, a fresh generation, ms to live, a secret or nothing.
local generation, count = standing(ARGV[1], ARGV[2])
if not generation then
  generation, count = ARGV[3], 0
  begin(generation, ARGV[4])
end
if ARGV[5] ~= '' and redis.call('EXISTS', KEYS[4]) == 0 then redis.call('SET', KEYS[4], ARGV[5], 'PX', ARGV[4]) end
return state(generation, count, ARGV[1], ARGV[2], ARGV[4])
"""
)

ANNOUNCE = Script(
    _BEGIN
    + """
-- ARGV: generation and count known, a fresh generation, ms to live, the notice, its owner, entries of the log to keep,
-- a channel. Gives the state, and how many replicas this server has.
local generation, count = standing(ARGV[1], ARGV[2])
if not generation then
  generation, count = ARGV[3], 0
  begin(generation, ARGV[4])
end
count = count + 1
write(KEYS[1], generation, count, ARGV[4])
redis.call('RPUSH', KEYS[2], string.format('%d %d ', count, now()) .. ARGV[5])
redis.call('LTRIM', KEYS[2], -tonumber(ARGV[7]), -1)
redis.call('HSET', KEYS[3], count, string.format('%d %d %s ', count, now(), ARGV[6]) .. ARGV[5])
redis.call('PUBLISH', ARGV[8], string.format('%s %d', generation, count))
local found = state(generation, count, ARGV[1], ARGV[2], ARGV[4])
found[6] = tonumber(string.match(redis.call('INFO', 'replication'), 'connected_slaves:(%d+)') or '0')
return found
"""
)

CLAIM = Script(
    _SPLIT
    + """
-- KEYS: open. ARGV: generation and count of a removal, who wants to take out what it means, ms after which whoever does
-- is taken to be gone.
if redis.call('HGET', KEYS[1], 'generation') ~= ARGV[1] then return 0 end
local line = redis.call('HGET', KEYS[1], ARGV[2])
if not line then return 0 end
local ms, owner, notice = string.match(line, '^%d+ (%d+) (%x+) (.*)$')
if owner ~= ARGV[3] and now() < tonumber(ms) + tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[2], string.format('%d %d %s ', tonumber(ARGV[2]), now(), ARGV[3]) .. notice)
return 1
"""
)

FINISH = Script(
    """
-- KEYS: open. ARGV: generation and count of a removal. That count in another generation is another removal.
if redis.call('HGET', KEYS[1], 'generation') == ARGV[1] then redis.call('HDEL', KEYS[1], ARGV[2]) end
return 1
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
