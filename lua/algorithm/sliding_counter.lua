-- Two counts for each key, of this window and of the one before, which weighs as much as the sliding
-- window still overlaps it. In ticks, of which a window has at most 2^20, so that every product is
-- exact.
--
-- KEYS     one string for each key: `<start of the window in us> <units> <units of the one before>`
-- ARGV     for each hit `c<cost> <limit> <window> <tick>`, the spans in microseconds
-- returns  sliding_counter(), which makes the algorithm, with the functions of a token bucket; what
--          a hit finds are the units of its window and of the one before

local function sliding_counter()
  local counter = {}

  function counter.parse(text, now)
    local cost, limit, window, tick = string.match(text, 'c(%d+) (%d+) (%d+) (%d+)$')
    window, tick = tonumber(window), tonumber(tick)
    local elapsed = now % window
    local ticks = math.ceil(window / tick)
    return {
      algorithm = counter,
      cost = tonumber(cost), limit = tonumber(limit), window = window,
      start = now - elapsed, ticks = ticks, overlap = ticks - math.floor(elapsed / tick),
    }
  end

  function counter.read(key)
    local value = redis.pcall('GET', key)
    if not value then
      return { start = 0, current = 0, previous = 0, changed = false }
    end
    if type(value) == 'table' then
      return { fault = value.err }
    end
    local start, current, previous = string.match(value, '^(%d+) (%d+) (%d+)$')
    if not start or #start > 16 or #current > 10 or #previous > 10 then
      return { fault = 'WRONGTYPE the key holds a string that is no sliding counter' }
    end
    return {
      start = tonumber(start),
      current = tonumber(current), previous = tonumber(previous), changed = false,
    }
  end

  function counter.look(p, state, now)
    local current, previous = 0, 0
    if state.start >= p.start then
      current, previous = state.current, state.previous
      if state.start > p.start then
        -- The clock stepped back: what was counted counts in the window of now.
        state.start, state.window, state.changed = p.start, p.window, p
      end
    elseif state.start + p.window == p.start then
      previous = state.current
    end
    local taken = previous * p.overlap + (current + p.cost) * p.ticks
    return p.cost == 0 or taken <= p.limit * p.ticks, current, previous
  end

  function counter.charge(p, state, current, previous)
    if p.cost > 0 then
      state.start, state.window = p.start, p.window
      state.current, state.previous, state.changed = current + p.cost, previous, p
    end
  end

  function counter.write(key, state, now)
    local text = format('%.0f %.0f %.0f', state.start, state.current, state.previous)
    local windows = state.current > 0 and 2 or state.previous > 0 and 1 or 0
    put(key, text, math.max(now, state.start + windows * state.window))
  end

  return counter
end
