-- Decides a batch of requests in order. Each is charged to all of its limits or to none.
--
-- KEYS     the state of each hit, request by request; a key may serve several requests
-- ARGV     for each run of requests whose hits have the same parameters two: how many requests those
--          are, and the hits of each, `<hit>+<hit>...`, each in the form of its algorithm; `~` before it makes it a shadow, which does not count
--          for its request, and is charged if that is admitted and it fits itself
-- returns  now, then for each hit what it found before its request was charged, in the two numbers of
--          its algorithm: x, or {x, y} where y is not 0, or {x, wait, reset} of an algorithm that
--          foresees. A hit that was not charged, though it may have been free, answers -1 - x for x.
--          A hit whose key holds something else answers a string that says so, and its request has
--          changed nothing, unless the hit is a shadow.
--
-- Every key is read before any is written: an error inside a script leaves its earlier writes. Each
-- table, function and text made here costs the server more than the arithmetic, so they are few, and
-- algorithms are made when they are used.

local keys, reply, states, shapes = KEYS, { now }, {}, {}

local makers = {
  [108] = sliding_log, [99] = sliding_counter, [119] = fixed_window, [107] = lock,
}
local algorithms = {}

local function parse(text)
  local tag, shadow = string.byte(text), false
  if tag == 126 then
    text, shadow = string.sub(text, 2), true
    tag = string.byte(text)
  end
  local maker = makers[tag] or token_bucket
  algorithms[maker] = algorithms[maker] or maker()
  local p = algorithms[maker].parse(text, now)
  p.shadow = shadow
  return p
end

local function settle(p, state, x, y, charged)
  local answer = charged and x or -1 - x
  if p.algorithm.foresee then
    answer = { answer, p.algorithm.foresee(p, state, x, charged, now) }
  elseif y ~= 0 then
    answer = { answer, y }
  end
  if charged then
    p.algorithm.charge(p, state, x, y, now)
  end
  return answer
end

local function decide(hits, before)
  local admitted, fits, rests = true, nil, nil
  for i, p in ipairs(hits) do
    local key = keys[before + i]
    local state = states[key] or p.algorithm.read(key, p, now)
    states[key] = state
    if state.fault then
      admitted, fits = admitted and p.shadow, nil
    else
      local x, y
      fits, x, y = p.algorithm.look(p, state, now, fits)
      if not fits then
        if p.shadow then
          x = -1 - x
        else
          admitted = false
        end
      end
      reply[before + i + 1] = x
      if y ~= 0 then
        rests = rests or {}
        rests[i] = y
      end
    end
  end
  for i, p in ipairs(hits) do
    local state, x = states[keys[before + i]], reply[before + i + 1]
    if state.fault then
      reply[before + i + 1] = state.fault
    else
      local charged = admitted and x >= 0
      x = x >= 0 and x or -1 - x
      reply[before + i + 1] = settle(p, state, x, rests and rests[i] or 0, charged)
    end
  end
end

local before = 0
for run = 1, #ARGV / 2 do
  local times, shape = tonumber(ARGV[2 * run - 1]), ARGV[2 * run]
  local hits = shapes[shape]
  if not hits then
    hits = {}
    if string.find(shape, '+', 1, true) then
      for text in string.gmatch(shape, '[^+]+') do
        hits[#hits + 1] = parse(text)
      end
    else
      hits[1] = parse(shape)
    end
    shapes[shape] = hits
  end
  if #hits == 1 then
    -- Most requests have one hit: what fits is charged.
    local p = hits[1]
    local read, look = p.algorithm.read, p.algorithm.look
    for i = before + 1, before + times do
      local key = keys[i]
      local state = states[key] or read(key, p, now)
      states[key] = state
      if state.fault then
        reply[i + 1] = state.fault
      else
        local fits, x, y = look(p, state, now)
        reply[i + 1] = settle(p, state, x, y, fits)
      end
    end
    before = before + times
  else
    for _ = 1, times do
      decide(hits, before)
      before = before + #hits
    end
  end
end

for key, state in pairs(states) do
  if state.changed then
    state.changed.algorithm.write(key, state, now)
  end
end

return reply
