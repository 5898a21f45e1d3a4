-- The one place that knows expiry: a key lasts until the end of the second in which what it holds comes
-- to say no more than an absent one.
--
-- KEYS     the key that a function is given
-- ARGV     none
-- returns  WHOLE: the format of whole numbers up to 10^16, in all their digits
--          put(key, value, micros): nothing; the key holds value until the second of that time ends, in
--          microseconds since the Unix epoch; both are set together
--          expire(key, micros): nothing; the key, just written, lasts until then
--          add(key, number): nothing; adds to the number in a key, which lasts as long as before
--          keep(key, value): nothing; the key holds value for as long as it would have lasted
--
-- Setting an expiry costs the server more than all else that a charge does, and only a new second is
-- a new expiry.

local call, format, floor = redis.call, string.format, math.floor
-- `%d` takes half as long as `%.0f`, but on some machines no more than 32 bits.
local WHOLE = format('%d', 1099511627776) == '1099511627776' and '%d' or '%.0f'
local SECOND = 1000000

local function put(key, value, micros)
  call('SET', key, value, 'EXAT', format(WHOLE, floor(micros / SECOND) + 1))
end

local function expire(key, micros)
  call('EXPIREAT', key, format(WHOLE, floor(micros / SECOND) + 1))
end

local function add(key, number)
  call('INCRBY', key, number)
end

local function keep(key, value)
  call('SET', key, value, 'KEEPTTL')
end
