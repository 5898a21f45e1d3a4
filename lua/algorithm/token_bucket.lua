-- A bucket kept as the time at which it is full again: whole microseconds since the Unix epoch, and
-- picoseconds above them. A double holds whole microseconds exactly, and nothing finer, so each time
-- is a pair; the arithmetic only adds, compares and carries.
--
-- KEYS     one string for each bucket, see lib/bucket.lua
-- ARGV     for each hit `<increment> <capacity>`, see lib/bucket.lua
-- returns  token_bucket(), which makes the algorithm, with
--            parse(text): the parameters of a hit
--            read(key): the state, or a table with what is wrong with the key as its fault
--            look(p, state, now): whether a hit with the parameters p fits, and its backlog, us and ps
--            charge(p, state, us, ps, now): takes the hit's increment, on that backlog
--            write(key, state): keeps the state until it equals a fresh one
--          a state is to be written if it says by whose parameters it has changed

local function token_bucket()
  local bucket = {}

  function bucket.parse(text)
    local p = parse_bucket(text)
    p.algorithm = bucket
    return p
  end

  function bucket.read(key)
    local value = redis.pcall('GET', key)
    if not value then
      return { us = 0, ps = 0, was = nil, whole = false, changed = false }
    end
    if type(value) == 'table' then
      return { fault = value.err }
    end
    local us, ps = string.match(value, '^([1-9]%d*)%.?(%d*)$')
    if not us or #us > 16 or (#us ~= #value and #ps ~= 6) then
      return { fault = NO_BUCKET }
    end
    us = tonumber(us)
    return { us = us, ps = tonumber(ps) or 0, was = us, whole = ps == '', changed = false }
  end

  function bucket.look(p, state, now)
    local us, ps = state.us - now, state.ps
    if us < 0 then
      us, ps = 0, 0
    elseif us > p.cu or (us == p.cu and ps > p.cp) then
      -- The clock stepped back: no key is locked for longer than a full refill.
      us, ps = p.cu, p.cp
      state.us, state.ps, state.changed = now + us, ps, p
    end
    local after, rest = us + p.iu, ps + p.ip
    if rest >= 1000000 then
      after, rest = after + 1, rest - 1000000
    end
    return after < p.cu or (after == p.cu and rest <= p.cp), us, ps
  end

  function bucket.charge(p, state, us, ps, now)
    if p.iu == 0 and p.ip == 0 then
      return
    end
    us, ps = us + p.iu, ps + p.ip
    if ps >= 1000000 then
      us, ps = us + 1, ps - 1000000
    end
    state.us, state.ps, state.changed = now + us, ps, p
  end

  function bucket.write(key, state)
    write_bucket(state.changed, key, state.us, state.ps, state.was, state.whole)
  end

  return bucket
end
