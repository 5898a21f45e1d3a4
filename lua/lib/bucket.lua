-- How the parameters and the states of token buckets are written.
--
-- KEYS     the key that a function is given: `<us>` or `<us>.<six digits of picoseconds>`, the time at
--          which its bucket is full again
-- ARGV     the text that a function is given: `<increment> <capacity>`, both in the form of the state
-- returns  NO_BUCKET: the fault of a key that holds another string
--          parse_bucket(text): the parameters of a hit, without its algorithm; nil if it is of
--          another, or of several
--          write_bucket(p, key, us, ps, was, whole): nothing; the key holds a state until it equals
--          a fresh one; what it held before are the microseconds `was`, nil if nothing, and no
--          picoseconds if it was whole

local NO_BUCKET = 'WRONGTYPE the key holds a string that is no token bucket'

local function parse_bucket(text)
  local iu, ip, cu, cp = string.match(text, '^(%d+)%.?(%d*) (%d+)%.?(%d*)$')
  if not iu then
    return nil
  end
  return {
    text = iu, iu = tonumber(iu), ip = tonumber(ip) or 0,
    cu = tonumber(cu), cp = tonumber(cp) or 0,
  }
end

local function write_bucket(p, key, us, ps, was, whole)
  local kept = was and floor(was / SECOND) == floor(us / SECOND)
  if whole and ps == 0 then
    local more = us - was
    add(key, more == p.iu and p.text or format(WHOLE, more))
    if not kept then
      expire(key, us)
    end
    return
  end
  local value = format(WHOLE, us)
  if ps > 0 then
    value = format('%s.%06d', value, ps)
  end
  if kept then
    keep(key, value)
  else
    put(key, value, us)
  end
end
