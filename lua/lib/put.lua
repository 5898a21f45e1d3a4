-- The one place that writes, and that knows expiry.
--
-- KEYS     the key that put is given
-- ARGV     none
-- returns  put(key, value, micros): nothing; the key holds value for that many microseconds, rounded
--          up to whole milliseconds and at least one, set together with the value

local function put(key, value, micros)
  local ttl = math.max(1, math.ceil(micros / 1000))
  redis.call('SET', key, value, 'PX', string.format('%.0f', ttl))
end
