-- A bucket kept as the time at which it is full again: whole microseconds since the Unix epoch, and
-- picoseconds above them. A double holds whole microseconds exactly, and nothing finer, so each time
-- is a pair; the arithmetic only adds, compares and carries.
--
-- KEYS     one string for each bucket: `<us>` or `<us>.<six digits of picoseconds>`
-- ARGV     for each hit `<increment> <capacity>`, both in the form of the state
-- returns  token_bucket, with
--            parse(text): the parameters of a hit
--            read(key): the state, or a table with what is wrong with the key as its fault
--            look(p, state, now): whether a hit with the parameters p fits, and its backlog, us and ps
--            charge(p, state, us, ps, now): takes the hit's increment, on that backlog
--            write(key, state, now): keeps the state until it equals a fresh one

local token_bucket = {}

function token_bucket.parse(text)
  local iu, ip, cu, cp = string.match(text, '(%d+)%.?(%d*) (%d+)%.?(%d*)$')
  return {
    algorithm = token_bucket,
    iu = tonumber(iu), ip = tonumber(ip) or 0,
    cu = tonumber(cu), cp = tonumber(cp) or 0,
  }
end

function token_bucket.read(key)
  local value = redis.pcall('GET', key)
  if not value then
    return { algorithm = token_bucket, us = 0, ps = 0, changed = false }
  end
  if type(value) == 'table' then
    return { fault = value.err }
  end
  local us, ps = string.match(value, '^(%d+)%.?(%d*)$')
  if not us or #us > 16 or (#us ~= #value and #ps ~= 6) then
    return { fault = 'WRONGTYPE the key holds a string that is no token bucket' }
  end
  return { algorithm = token_bucket, us = tonumber(us), ps = tonumber(ps) or 0, changed = false }
end

function token_bucket.look(p, state, now)
  local us, ps = state.us - now, state.ps
  if us < 0 then
    us, ps = 0, 0
  elseif us > p.cu or (us == p.cu and ps > p.cp) then
    -- The clock stepped back: no key is locked for longer than a full refill.
    us, ps = p.cu, p.cp
    state.us, state.ps, state.changed = now + us, ps, true
  end
  local after, rest = us + p.iu, ps + p.ip
  if rest >= 1000000 then
    after, rest = after + 1, rest - 1000000
  end
  return after < p.cu or (after == p.cu and rest <= p.cp), us, ps
end

function token_bucket.charge(p, state, us, ps, now)
  if p.iu == 0 and p.ip == 0 then
    return
  end
  us, ps = us + p.iu, ps + p.ip
  if ps >= 1000000 then
    us, ps = us + 1, ps - 1000000
  end
  state.us, state.ps, state.changed = now + us, ps, true
end

function token_bucket.write(key, state, now)
  local micros = state.us - now
  if state.ps == 0 then
    put(key, string.format(WHOLE, state.us), micros)
  else
    put(key, string.format('%s.%06d', string.format(WHOLE, state.us), state.ps), micros + 1)
  end
end
