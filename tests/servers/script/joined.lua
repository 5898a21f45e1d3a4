-- The script under test, between the two halves of this file, sees this `redis` instead of the
-- server's: the time is an argument, and a key is kept without expiry.
--
-- KEYS     as the script wants them; it may use no others
-- ARGV     as the script wants them, then the two texts that TIME answers
-- returns  the script's answer, then key, value, option and time to live of each SET, as given

local server, declared, written = redis, {}, {}
for i = 1, #KEYS do
  declared[KEYS[i]] = true
end

local redis = {}

function redis.call(command, key, value, option, ttl, more)
  if command == 'TIME' and not key then
    return { ARGV[#KEYS + 1], ARGV[#KEYS + 2] }
  end
  assert(command == 'SET' and not more, 'a command that is not known here')
  assert(declared[key], 'a key that was not declared')
  for _, text in ipairs({ key, value, option, ttl }) do
    assert(type(text) == 'string', 'an argument that the server would turn into text')
    written[#written + 1] = text
  end
  return server.call('SET', key, value)
end

function redis.pcall(command, key, more)
  assert(command == 'GET' and not more, 'a command that is not known here')
  assert(declared[key], 'a key that was not declared')
  assert(#written == 0, 'a key that is read after another was written')
  return server.pcall('GET', key)
end

local function script()
-- the script
end

return { script(), written }
