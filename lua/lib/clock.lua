-- The one place that knows the time.
--
-- KEYS     none
-- ARGV     none
-- returns  clock(): the server's time, in whole microseconds since the Unix epoch

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
