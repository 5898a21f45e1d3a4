-- The token bucket as it is usually written: a hash of tokens and a time.
--
-- KEYS     the bucket
-- ARGV     tokens per second, capacity, cost
-- returns  whether the cost was taken, and the whole tokens that are left

local rate, capacity, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local state = redis.call('HMGET', KEYS[1], 'tokens', 'time')
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local tokens = tonumber(state[1]) or capacity
local since = math.max(0, now - (tonumber(state[2]) or now))
tokens = math.min(capacity, tokens + since * rate)
local allowed = tokens >= cost
if allowed then
  tokens = tokens - cost
end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'time', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(capacity / rate * 1000))
return { allowed and 1 or 0, math.floor(tokens) }
