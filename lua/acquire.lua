-- Decides a batch of requests in order. Each is charged to all of its limits or to none.
--
-- KEYS     the state of each hit, request by request; a key may serve several requests
-- ARGV     for each key the hit's parameters in the form of its algorithm; `+` before them joins the
--          hit to the request of the hit before it
-- returns  now, then for each hit what it found before its request was charged, in the two numbers of
--          its algorithm: x, or {x, y} where y is not 0, or {x, wait, reset} of an algorithm that
--          foresees. A hit of a denied request answers -1 - x for x. A hit whose key holds something
--          else answers a string that says so, and its request has changed nothing.
--
-- Every key is read before any is written: an error inside a script leaves its earlier writes.

local now = clock()
local reply = { now }

-- A script runs anew for each batch, so algorithms other than the bucket are made when they are used.
local log, counter, window
local function algorithm(text)
  local tag, second = string.byte(text, 1, 2)
  if tag == 43 then
    tag = second
  end
  if tag == 108 then
    log = log or sliding_log()
    return log
  elseif tag == 99 then
    counter = counter or sliding_counter()
    return counter
  elseif tag == 119 then
    window = window or fixed_window()
    return window
  end
  return token_bucket
end

local parsed = {}
local function parameters(text)
  local p = parsed[text]
  if not p then
    p = algorithm(text).parse(text, now)
    parsed[text] = p
  end
  return p
end

local hits, states, order = {}, {}, {}
for i = 1, #KEYS do
  local key, p = KEYS[i], parameters(ARGV[i])
  hits[i] = p
  if not states[key] then
    local state, fault = p.algorithm.read(key, p, now)
    states[key] = state or { fault = fault }
    order[#order + 1] = key
  end
end

local x, y = {}, {}
local function decide(first, last)
  local admitted = true
  for i = first, last do
    local p, state, fits = hits[i], states[KEYS[i]], false
    if not state.fault then
      fits, x[i], y[i] = p.algorithm.look(p, state, now)
    end
    admitted = admitted and fits
  end
  for i = first, last do
    local p, state = hits[i], states[KEYS[i]]
    local answer = state.fault
    if not answer then
      answer = admitted and x[i] or -1 - x[i]
      if p.algorithm.foresee then
        answer = { answer, p.algorithm.foresee(p, state, x[i], admitted, now) }
      elseif y[i] ~= 0 then
        answer = { answer, y[i] }
      end
      if admitted then
        p.algorithm.charge(p, state, x[i], y[i], now)
      end
    end
    reply[i + 1] = answer
  end
end

local first = 1
for i = 1, #KEYS do
  if i == #KEYS or string.byte(ARGV[i + 1]) ~= 43 then
    decide(first, i)
    first = i + 1
  end
end

for i = 1, #order do
  local state = states[order[i]]
  if state.changed then
    state.algorithm.write(order[i], state, now)
  end
end

return reply
