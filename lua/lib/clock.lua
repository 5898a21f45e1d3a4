-- The one place that knows the time.
--
-- KEYS     none
-- ARGV     none
-- returns  clock(): the server's time, in whole microseconds since the Unix epoch

local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end
