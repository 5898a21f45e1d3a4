-- The script under test, between the two halves of this file, sees this `redis` instead of the
-- server's: the time is an argument, and a key is kept without expiry.
--
-- KEYS     as the script wants them; it may use no others
-- ARGV     as the script wants them, then the two texts that TIME answers
-- returns  the script's answer, then key, value and time to live of each key that was written, as
--          given; the value of a sorted set is all of its members with their scores

local server, declared, written, unfinished = redis, {}, {}, {}
for i = 1, #KEYS do
  declared[KEYS[i]] = true
end

local redis = {}
local done = {}

local READS = { GET = true, ZREVRANGE = true, ZCOUNT = true, ZCARD = true, ZRANGE = true }
local CHANGES = { ZADD = true, ZREMRANGEBYSCORE = true, ZREMRANGEBYRANK = true }

local function check(key, ...)
  assert(declared[key], 'a key that was not declared')
  for _, text in ipairs({ key, ... }) do
    assert(type(text) == 'string', 'an argument that the server would turn into text')
  end
end

local function wrote(key, value, option, ttl)
  assert(option == 'PX', 'the value and its milliseconds in one command')
  assert(not done[key], 'a key that is written twice')
  done[key], unfinished[key] = true, nil
  for _, part in ipairs({ key, value, ttl }) do
    written[#written + 1] = part
  end
end

function redis.call(command, key, ...)
  if command == 'TIME' and not key then
    return { ARGV[#ARGV - 1], ARGV[#ARGV] }
  end
  check(key, ...)
  if READS[command] then
    return redis.pcall(command, key, ...)
  elseif command == 'ZRANGEBYSCORE' then
    assert(not done[key] and not unfinished[key], 'a key that is read after it was written')
    return server.call(command, key, ...)
  end
  if command == 'SET' then
    local value, option, ttl, more = ...
    assert(ttl and not more, 'a value without expiry, or with more')
    wrote(key, value, option, ttl)
    return server.call('SET', key, value)
  elseif command == 'PEXPIRE' then
    local ttl, more = ...
    assert(ttl and not more and unfinished[key], 'an expiry without a change, or with more')
    if server.call('EXISTS', key) == 0 then
      -- A set that was emptied is gone.
      done[key], unfinished[key] = true, nil
    else
      wrote(key, server.call('ZRANGE', key, 0, -1, 'WITHSCORES'), 'PX', ttl)
    end
    return 1
  end
  assert(CHANGES[command], 'a command that is not known here')
  assert(not done[key], 'a change after the expiry')
  unfinished[key] = true
  return server.call(command, key, ...)
end

function redis.pcall(command, key, ...)
  assert(READS[command], 'a command that is not known here')
  check(key, ...)
  assert(#written == 0 and not next(unfinished), 'a key that is read after another was written')
  return server.pcall(command, key, ...)
end

local function script()
-- the script
end

local answer = script()
assert(not next(unfinished), 'a change without an expiry')
return { answer, written }
