-- The script under test, behind this file, sees this `redis` instead of the server's: the time is an
-- argument, and a key is kept without expiry, as the server's clock goes on by itself.
--
-- KEYS     as the script wants them
-- ARGV     as the script wants them, then the two texts that TIME answers
-- returns  what the script returns

local server = redis
local seconds, micros = table.remove(ARGV, #ARGV - 1), nil
micros = table.remove(ARGV)
local redis = { pcall = server.pcall }

function redis.call(command, key, ...)
  if command == 'TIME' then
    return { seconds, micros }
  elseif command == 'EXPIREAT' then
    return 1
  elseif command == 'SET' then
    return server.call('SET', key, (...))
  end
  return server.call(command, key, ...)
end
