-- Locks a key for a time once the hit before it was denied so many times. What it counts are denials,
-- so it is never charged.
--
-- KEYS     one string for each key: `<us at which the denials are forgotten, or the lock ends> <denials>`
-- ARGV     for each hit `k<cost> <denials that lock> <length> <memory>`, the spans in microseconds
-- returns  lock(), which makes the algorithm, with the functions of a token bucket; look() is also
--          told whether the hit before fitted, and counts its denial; what a hit finds are the
--          microseconds until its denials are forgotten or its lock ends, and the denials

local function lock()
  local guard = {}

  function guard.parse(text)
    local cost, after, length, memory = string.match(text, 'k(%d+) (%d+) (%d+) (%d+)$')
    return {
      algorithm = guard,
      cost = tonumber(cost), after = tonumber(after),
      length = tonumber(length), memory = tonumber(memory),
    }
  end

  function guard.read(key)
    local value = redis.pcall('GET', key)
    if not value then
      return { finish = 0, count = 0, changed = false }
    end
    if type(value) == 'table' then
      return { fault = value.err }
    end
    local finish, count = string.match(value, '^(%d+) (%d+)$')
    if not finish or #finish > 16 or #count > 10 then
      return { fault = 'WRONGTYPE the key holds a string that is no lock' }
    end
    return { finish = tonumber(finish), count = tonumber(count), changed = false }
  end

  function guard.look(p, state, now, fitted)
    local left, count = state.finish - now, state.count
    if left <= 0 then
      left, count = 0, 0
    elseif left > p.length then
      -- The clock stepped back, or locks were longer.
      left = p.length
      state.finish, state.changed = now + left, p
    end
    if fitted == false and count < p.after then
      if count == 0 then
        left = p.memory
      end
      count = count + 1
      if count >= p.after then
        left = p.length
      end
      state.finish, state.count, state.changed = now + left, count, p
    end
    return p.cost == 0 or count < p.after, left, count
  end

  function guard.charge() end

  function guard.write(key, state)
    put(key, format('%.0f %.0f', state.finish, state.count), state.finish)
  end

  return guard
end
