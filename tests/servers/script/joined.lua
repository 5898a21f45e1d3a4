-- The script under test, between the two halves of this file, sees this `redis` instead of the
-- server's: the time is an argument, and a key is kept without expiry.
--
-- KEYS     as the script wants them; it may use no others
-- ARGV     as the script wants them, then the two texts that TIME answers
-- returns  the script's answer, then of each key that was written: key, value, and the second since
--          the Unix epoch at which it is to expire, by what was said of it last, 0 if nothing ever was;
--          the value of a sorted set is all of its members with their scores

local server, declared, writes, unfinished = redis, {}, {}, {}
for i = 1, #KEYS do
  declared[KEYS[i]] = true
end

local redis = {}
local done = {}

-- What was said of the expiry of keys. It is no key that a script may use.
local EXPIRIES = 'the expiries of all keys'
local READS = { GET = true, ZREVRANGE = true, ZCOUNT = true, ZCARD = true, ZRANGE = true }
local CHANGES = { ZADD = true, ZREMRANGEBYSCORE = true, ZREMRANGEBYRANK = true }

local function check(key, ...)
  assert(declared[key], 'a key that was not declared')
  for _, text in ipairs({ key, ... }) do
    assert(type(text) == 'string', 'an argument that the server would turn into text')
  end
end

local function expires(key, second)
  assert(string.find(second, '^%d+$'), 'an expiry that is no whole second')
  server.call('HSET', EXPIRIES, key, second)
end

local function wrote(key)
  assert(not done[key], 'a key that is written twice')
  done[key], unfinished[key] = true, nil
  writes[#writes + 1] = key
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
    local value, option, second, more = ...
    if option == 'EXAT' then
      assert(second and not more, 'a value without expiry, or with more')
      expires(key, second)
    else
      assert(option == 'KEEPTTL' and not second, 'a value without expiry')
      assert(server.call('EXISTS', key) == 1, 'an expiry that is to be kept, and is not there')
    end
    wrote(key)
    return server.call('SET', key, value)
  elseif command == 'INCRBY' then
    assert(server.call('EXISTS', key) == 1, 'a value without expiry')
    wrote(key)
    return server.call(command, key, ...)
  elseif command == 'EXPIREAT' then
    local second, more = ...
    assert(second and not more, 'an expiry with more')
    expires(key, second)
    if unfinished[key] then
      wrote(key)
    else
      assert(done[key], 'an expiry without a change')
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
  assert(#writes == 0 and not next(unfinished), 'a key that is read after another was written')
  return server.pcall(command, key, ...)
end

local function script(ARGV)
-- the script
end

local given = {}
for i = 1, #ARGV - 2 do
  given[i] = ARGV[i]
end
local answer = script(given)
assert(not next(unfinished), 'a change without an expiry')
local written = {}
for _, key in ipairs(writes) do
  local value = server.pcall('GET', key)
  if value and value.err then
    value = server.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  end
  -- A set that was emptied is gone.
  if value then
    written[#written + 1] = key
    written[#written + 1] = value
    written[#written + 1] = server.call('HGET', EXPIRIES, key) or '0'
  end
end
return { answer, written }
