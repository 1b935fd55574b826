"""What must happen to a recording in one step, as scripts.

Of a recording there are, all in the slot of its key:

- the *claim* on the key: ``<identity, 32 hex digits> <the head when it was begun>``. Void unless that one is live;
- the *stream*: ``0-1`` with the head, then record n as ``n-0``, then one that says how it ended;
- *live*: how many records and bytes there are. It lives for a lease, and only what has it can be gone on with: a
  producer that was taken for dead is not heard any more;
- the *readers*: the processes that follow, each until when (ms, by the server's clock). They are told by a message what
  is new: ``<name> <number of the first record> <what it is> <lengths>`` and a line feed, then the records.
"""

from cacheproxy.stores.redis_scripts import Script

RECORD, END, CUT, TICK = b"r", b"e", b"x", b"t"
"""What there is in a stream, or what a message is: records, a good end, a bad one; a message alone: go and read."""

CLAIM = Script(
    """
-- KEYS: head, claim, stream, live. ARGV: the head that it must be, identity, lease (ms). Gives the head if it is
-- another; else the identity of the recording that runs.
local head = redis.call('GET', KEYS[1])
if head ~= ARGV[1] then return {'head', head} end
local claim = redis.call('GET', KEYS[2])
if claim and string.sub(claim, 34) == head then
  local runs = string.sub(claim, 1, 32)
  if redis.call('EXISTS', KEYS[2] .. ':' .. runs .. ':l') == 1 then return {'runs', runs} end
end
redis.call('SET', KEYS[2], ARGV[2] .. ' ' .. head, 'PX', ARGV[3])
redis.call('DEL', KEYS[3], KEYS[4])
redis.call('XADD', KEYS[3], '0-1', 'h', head)
redis.call('PEXPIRE', KEYS[3], 2 * ARGV[3])
redis.call('HSET', KEYS[4], 'n', 0, 'b', 0)
redis.call('PEXPIRE', KEYS[4], ARGV[3])
return {'runs', ARGV[2]}
"""
)

TELL = Script(
    """
-- KEYS: claim, stream, live, readers. ARGV: identity, records so far, lease (ms), most bytes, how it ends ('': it goes
-- on, 'e', 'x'), ms to stay after that, what a channel's name begins with, name, most bytes of a message, records.
-- Gives what became of it, and how many follow.
local said = redis.call('HMGET', KEYS[3], 'n', 'b')
local ends = ARGV[5]
local time = redis.call('TIME')
local readers = redis.call('ZRANGEBYSCORE', KEYS[4], time[1] * 1000 + math.floor(time[2] / 1000), '+inf')
local function call_out(first, what, lengths, body)
  local message = string.format('%s %d %s %s', ARGV[8], first, what, table.concat(lengths, ' ')) .. '\\n' .. body
  for _, reader in ipairs(readers) do redis.call('PUBLISH', ARGV[7] .. reader, message) end
end
-- Whether this was carried out before, and only the answer was lost. What comes late changes nothing either.
local after = ARGV[2] + #ARGV - 9
local function is_said()
  if said[1] then return ends == '' and said[1] ~= ARGV[2] and tonumber(said[1]) >= after end
  local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
  return ends == 'e' and last and last[2][1] == 'e' and last[1] == string.format('%d-0', after + 1)
end
if is_said() then return {'said', #readers} end
-- Taken for dead, evicted; or this server has lost some of it, as after a failover.
if not said[1] or (ends ~= 'x' and said[1] ~= ARGV[2]) or redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('DEL', KEYS[3], KEYS[4])
  call_out(0, 't', {}, '')
  return {'lost', 0}
end
local first, number, bytes = tonumber(said[1]) + 1, tonumber(said[1]), tonumber(said[2])
for at = 10, #ARGV do bytes = bytes + #ARGV[at] end
local is_large = bytes > tonumber(ARGV[4])
if is_large then ends = 'x' end
local function add(kind, value)
  number = number + 1
  redis.call('XADD', KEYS[2], string.format('%d-0', number), kind, value)
end
local lengths = {}
for at = 10, is_large and 0 or #ARGV do
  lengths[#lengths + 1] = #ARGV[at]
  add('r', ARGV[at])
end
if #readers > 0 and (#lengths > 0 or ends ~= '') then
  local body = is_large and '' or table.concat(ARGV, '', 10)
  local what = ends == '' and 'r' or ends
  if #body > tonumber(ARGV[9]) then what, lengths, body = 't', {}, '' end
  call_out(first, what, lengths, body)
end
if ends ~= '' then
  add(ends, '')
  redis.call('DEL', KEYS[3], KEYS[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[6])
else
  redis.call('HSET', KEYS[3], 'n', string.format('%d', number), 'b', string.format('%d', bytes))
  redis.call('PEXPIRE', KEYS[3], ARGV[3])
  redis.call('PEXPIRE', KEYS[2], 2 * ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])  -- be it another's by now: it is void if that one is not live
end
return {is_large and 'too_large' or 'said', #readers}
"""
)

READ = Script(
    """
-- KEYS: head, then of each recording stream, live, readers. ARGV: the reader, lease (ms), then for each recording after
-- which number, and how many bytes at most. Gives the head, and for each: how it is, the head when it was begun,
-- records. Who has read is told what comes after by messages, for a lease.
local time = redis.call('TIME')
local till = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2]
local function look(stream, live, readers, number, most)
  local begun = redis.call('XRANGE', stream, '0-1', '0-1')[1]
  local last = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
  if not begun then return {'gone', '', {}} end
  local count = tonumber(string.match(last[1], '^%d+'))
  if last[2][1] == 'e' or last[2][1] == 'x' then count = count - 1 end
  if number > count then return {'gone', '', {}} end
  local records, bytes, size = {}, 0, 32
  while number < count and bytes < most do
    for _, row in ipairs(redis.call('XRANGE', stream, string.format('%d-0', number + 1), '+', 'COUNT', size)) do
      if number == count then break end
      number = number + 1
      if row[1] ~= string.format('%d-0', number) then return {'x', begun[2][2], records} end
      records[#records + 1] = row[2][2]
      bytes = bytes + #row[2][2]
    end
  end
  local how = 'live'
  if redis.call('EXISTS', live) == 1 then
    redis.call('ZADD', readers, till, ARGV[1])
    redis.call('PEXPIRE', readers, ARGV[2])
  else
    how = last[2][1] == 'e' and 'e' or 'x'
  end
  if number < count then how = 'more' end
  return {how, begun[2][2], records}
end
local told = {}
for at = 1, (#KEYS - 1) / 3 do
  local number, most = tonumber(ARGV[2 * at + 1]), tonumber(ARGV[2 * at + 2])
  told[at] = look(KEYS[3 * at - 1], KEYS[3 * at], KEYS[3 * at + 1], number, most)
end
return {redis.call('GET', KEYS[1]), told}
"""
)
