-- The one place that knows the time.
--
-- KEYS     none
-- ARGV     none
-- returns  now: the server's time, in whole microseconds since the Unix epoch

local now
do
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
