-- A count for each window of the clock or of the calendar, in UTC.
--
-- KEYS     one string for each count: `<start of the window in us> <units>`
-- ARGV     for each hit `w<cost> <limit> <span>`, the span in microseconds, or `day`, `week`, `month`
-- returns  fixed_window(), which makes the algorithm, with the functions of a token bucket; what a hit
--          finds are the units of its window, and 0

local function fixed_window()
  local window = {}
  local DAY = 86400 * 1000000

  -- The proleptic Gregorian calendar in integers, by Howard Hinnant's civil_from_days and
  -- days_from_civil: a year begins in March, and 719468 days lie between 0000-03-01 and 1970-01-01.
  local function first_of(year, month)
    if month > 12 then
      year, month = year + 1, month - 12
    end
    if month <= 2 then
      year, month = year - 1, month + 12
    end
    local of_year = math.floor((153 * (month - 3) + 2) / 5)
    local leap_days = math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
    return year * 365 + leap_days + of_year - 719468
  end

  local function month_of(day)
    day = day + 719468
    local era = math.floor(day / 146097)
    local of_era = day - era * 146097
    local leap_days = math.floor(of_era / 1460) - math.floor(of_era / 36524) + math.floor(of_era / 146096)
    local year = math.floor((of_era - leap_days) / 365)
    local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
    local from_march = math.floor((5 * of_year + 2) / 153)
    local month = from_march < 10 and from_march + 3 or from_march - 9
    return era * 400 + year + (month <= 2 and 1 or 0), month
  end

  local function around(span, now)
    local day = math.floor(now / DAY)
    if span == 'day' then
      return day * DAY, (day + 1) * DAY
    elseif span == 'week' then
      -- 1970-01-01 was a Thursday; weeks begin on Monday.
      local monday = math.floor((day + 3) / 7) * 7
      return math.max(0, monday - 3) * DAY, (monday + 4) * DAY
    elseif span == 'month' then
      local year, month = month_of(day)
      return first_of(year, month) * DAY, first_of(year, month + 1) * DAY
    end
    local start = now - now % span
    return start, start + span
  end

  function window.parse(text, now)
    local cost, limit, span = string.match(text, 'w(%d+) (%d+) (%w+)$')
    local start, finish = around(tonumber(span) or span, now)
    return {
      algorithm = window,
      cost = tonumber(cost), limit = tonumber(limit),
      start = start, finish = finish,
    }
  end

  function window.read(key)
    local value = redis.pcall('GET', key)
    if not value then
      return { start = 0, used = 0, changed = false }
    end
    if type(value) == 'table' then
      return { fault = value.err }
    end
    local start, used = string.match(value, '^(%d+) (%d+)$')
    if not start or #start > 16 or #used > 16 then
      return { fault = 'WRONGTYPE the key holds a string that is no window' }
    end
    return { start = tonumber(start), used = tonumber(used), changed = false }
  end

  function window.look(p, state, now)
    local used = 0
    if state.start >= p.start then
      used = state.used
      if state.start > p.start then
        -- The clock stepped back: what was counted counts in the window of now.
        state.start, state.finish, state.changed = p.start, p.finish, p
      end
    end
    return p.cost == 0 or used + p.cost <= p.limit, used, 0
  end

  function window.charge(p, state, used)
    if p.cost > 0 then
      state.start, state.finish = p.start, p.finish
      state.used, state.changed = used + p.cost, p
    end
  end

  function window.write(key, state, now)
    put(key, format('%.0f %.0f', state.start, state.used), state.used > 0 and state.finish or now)
  end

  return window
end
