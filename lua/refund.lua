-- Gives back what was charged, as far as it has not come back by itself.
--
-- KEYS     the state of each charge, no key twice
-- ARGV     for each key two: the parameters of a hit that costs the units to give back, in the form of
--          its algorithm, and the charge's stamp, `<us>` or `<us>.<six digits of picoseconds>`: when
--          a bucket is full again after the charge; when a hit of another algorithm was charged; or
--          `*`, for the latest charges, whichever they are
-- returns  now, then for each key 1, or a string that says what else it holds
--
-- A bucket gets back the units' time, but no more than its charge has left. A window gets back what
-- was charged in it while it counts, a log units of that moment. The latest units of a counter are
-- those of its window, and then those of the one before. Every key is read before any is written.

local LATEST = '*'
local give = {}

function give.bucket(p, state, us, ps, stamp)
  if us == 0 and ps == 0 then
    return
  end
  local left_us, left_ps = p.iu, p.ip
  if stamp ~= LATEST then
    local end_us, end_ps = string.match(stamp, '^(%d+)%.?(%d*)$')
    end_us, end_ps = tonumber(end_us) - now, tonumber(end_ps) or 0
    if end_us < 0 then
      return
    end
    if end_us < left_us or (end_us == left_us and end_ps < left_ps) then
      left_us, left_ps = end_us, end_ps
    end
  end
  if left_us == 0 and left_ps == 0 then
    return
  end
  us, ps = us - left_us, ps - left_ps
  if ps < 0 then
    us, ps = us - 1, ps + 1000000
  end
  if us < 0 then
    us, ps = 0, 0
  end
  state.us, state.ps, state.changed = now + us, ps, p
end

function give.window(p, state, used, _, stamp, text)
  local counts = stamp == LATEST or p.algorithm.parse(text, tonumber(stamp)).start == p.start
  if counts and used > 0 and p.cost > 0 then
    state.start, state.finish = p.start, p.finish
    state.used, state.changed = math.max(0, used - p.cost), p
  end
end

function give.counter(p, state, current, previous, stamp)
  local charged = stamp ~= LATEST and tonumber(stamp) or now
  charged = charged - charged % p.window
  local now_current, now_previous = current, previous
  if stamp == LATEST then
    now_current = math.max(0, current - p.cost)
    now_previous = math.max(0, previous - math.max(0, p.cost - current))
  elseif charged == p.start then
    now_current = math.max(0, current - p.cost)
  elseif charged + p.window == p.start then
    now_previous = math.max(0, previous - p.cost)
  end
  if now_current ~= current or now_previous ~= previous then
    state.start, state.window = p.start, p.window
    state.current, state.previous, state.changed = now_current, now_previous, p
  end
end

function give.log(p, state, _, _, stamp)
  if stamp == LATEST then
    return p.algorithm.release_latest(p, state, now)
  end
  p.algorithm.release(p, state, tonumber(stamp), now)
end

local makers = { [108] = sliding_log, [99] = sliding_counter, [119] = fixed_window }
local gives = { [108] = give.log, [99] = give.counter, [119] = give.window }

local hits, states, algorithms = {}, {}, {}
for i = 1, #KEYS do
  local text = ARGV[2 * i - 1]
  local maker = makers[string.byte(text)] or token_bucket
  algorithms[maker] = algorithms[maker] or maker()
  hits[i] = algorithms[maker].parse(text, now)
  states[i] = algorithms[maker].read(KEYS[i], hits[i], now)
end

local reply = { now }
for i = 1, #KEYS do
  local p, state, text = hits[i], states[i], ARGV[2 * i - 1]
  reply[i + 1] = state.fault or 1
  if not state.fault then
    local _, x, y = p.algorithm.look(p, state, now)
    local back = gives[string.byte(text)] or give.bucket
    back(p, state, x, y, ARGV[2 * i], text)
  end
end

for i = 1, #KEYS do
  local state = states[i]
  if state.changed then
    state.changed.algorithm.write(KEYS[i], state, now)
  end
end

return reply
