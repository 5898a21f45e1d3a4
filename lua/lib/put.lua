-- The one place that knows expiry: a key lasts until what it holds says no more than an absent one.
--
-- KEYS     the key that a function is given
-- ARGV     none
-- returns  WHOLE: the format of whole numbers up to 10^16, in all their digits
--          put(key, value, micros): nothing; the key holds value for that many microseconds, rounded
--          up to whole milliseconds, and one more, set together with the value
--          expire(key, micros): nothing; the key, just written, lasts for that long
--
-- A server counts from the millisecond that has begun, and some remove a key as soon as the one begins
-- in which it ends: without the one more, up to a millisecond too early.

-- `%d` takes half as long as `%.0f`, but on some machines no more than 32 bits.
local WHOLE = string.format('%d', 1099511627776) == '1099511627776' and '%d' or '%.0f'

local function put(key, value, micros)
  redis.call('SET', key, value, 'PX', string.format(WHOLE, math.ceil(math.max(0, micros) / 1000) + 1))
end

local function expire(key, micros)
  redis.call('PEXPIRE', key, string.format(WHOLE, math.ceil(math.max(0, micros) / 1000) + 1))
end
