-- The moments of all units of the last window, for each key. Members are numbered, so that units of
-- one moment stay apart; the scores are their moments in microseconds since the Unix epoch.
--
-- KEYS     one sorted set for each key
-- ARGV     for each hit `l<cost> <limit> <window>`, the window in microseconds
-- returns  sliding_log(), which makes the algorithm, with the functions of a token bucket, and
--            foresee(p, state, count, admitted, now): microseconds until one more hit like this fits,
--            and until the last unit falls out of the window
--            release(p, state, moment, now): gives the hit's cost back of what was taken at a moment
--            release_latest(p, state, now): gives it back of what was taken last
--          what a hit finds are the units in its window, and 0

local function sliding_log()
  local log = {}
  -- More arguments than this are too many for one call.
  local CHUNK = 1000
  local unpack = unpack or table.unpack

  function log.parse(text)
    local cost, limit, window = string.match(text, 'l(%d+) (%d+) (%d+)$')
    return {
      algorithm = log,
      cost = tonumber(cost), limit = tonumber(limit), window = tonumber(window),
    }
  end

  function log.read(key, p, now)
    local last = redis.pcall('ZREVRANGE', key, '0', '0', 'WITHSCORES')
    if last.err then
      return { fault = last.err }
    end
    local state = {
      key = key, window = p.window, changed = false,
      count = 0, stored = 0, dead = 0, added = 0, number = 0, last = 0, ahead = false,
    }
    if #last > 0 then
      state.number, state.last = tonumber(last[1]), tonumber(last[2])
      if not string.match(last[1], '^%d+$') or #last[1] ~= 16 then
        return { fault = 'WRONGTYPE the key holds a sorted set that is no sliding log' }
      end
      local alive = format('(%.0f', now - p.window)
      state.stored = redis.call('ZCOUNT', key, alive, '+inf')
      state.count = state.stored
      state.dead = redis.call('ZCARD', key) - state.stored
    end
    return state
  end

  function log.look(p, state, now)
    if state.last > now then
      -- The clock stepped back: no unit counts for longer than a window.
      state.last, state.ahead, state.changed = now, true, p
    end
    return p.cost == 0 or state.count + p.cost <= p.limit, state.count, 0
  end

  function log.foresee(p, state, count, admitted, now)
    local after, last = count, state.last
    if admitted and p.cost > 0 then
      after, last = count + p.cost, now
    end
    local surplus, wait = after + math.max(p.cost, 1) - p.limit, 0
    if surplus > 0 then
      local moment = now
      if surplus <= state.stored then
        local rank = format('%.0f', state.dead + surplus - 1)
        local oldest = redis.call('ZRANGE', state.key, rank, rank, 'WITHSCORES')
        moment = math.min(now, tonumber(oldest[2]))
      end
      wait = moment + p.window - now
    end
    return wait, math.max(0, last + p.window - now)
  end

  function log.charge(p, state, count, _, now)
    if p.cost > 0 then
      state.count, state.added = count + p.cost, state.added + p.cost
      state.last, state.changed = now, p
    end
  end

  -- Those of the ranks from first on, and before behind.
  local function remove(p, state, first, behind, now)
    if behind == first then
      return
    end
    state.removed = { format('%.0f', first), format('%.0f', behind - 1) }
    state.changed = p
    if behind == state.dead + state.stored and first > 0 then
      local rank = format('%.0f', first - 1)
      local last = redis.call('ZRANGE', state.key, rank, rank, 'WITHSCORES')
      state.last = math.min(now, tonumber(last[2]))
    end
  end

  function log.release(p, state, moment, now)
    if moment > now or now - moment >= p.window then
      return
    end
    local at, before = format('%.0f', moment), format('(%.0f', moment)
    local first = redis.call('ZCOUNT', state.key, '-inf', before)
    -- Members from after now, left by a clock that stepped back, are brought to now.
    local there = redis.call('ZCOUNT', state.key, at, moment == now and '+inf' or at)
    remove(p, state, first, first + math.min(there, p.cost), now)
  end

  function log.release_latest(p, state, now)
    local behind = state.dead + state.stored
    remove(p, state, behind - math.min(state.stored, p.cost), behind, now)
  end

  local function add(key, moment, members)
    for first = 1, #members, CHUNK do
      local arguments = {}
      for i = first, math.min(first + CHUNK - 1, #members) do
        arguments[#arguments + 1] = moment
        arguments[#arguments + 1] = members[i]
      end
      redis.call('ZADD', key, unpack(arguments))
    end
  end

  function log.write(key, state, now)
    local moment = format('%.0f', now)
    if state.ahead then
      add(key, moment, redis.call('ZRANGEBYSCORE', key, format('(%.0f', now), '+inf'))
    end
    if state.added > 0 then
      local members = {}
      for i = 1, state.added do
        members[i] = format('%016.0f', state.number + i)
      end
      -- Before the trimming: a server without memory refuses what a script writes first.
      add(key, moment, members)
      redis.call('ZREMRANGEBYSCORE', key, '-inf', format('%.0f', now - state.window))
    end
    if state.removed then
      redis.call('ZREMRANGEBYRANK', key, state.removed[1], state.removed[2])
    end
    expire(key, math.max(now, state.last + state.window))
  end

  return log
end
