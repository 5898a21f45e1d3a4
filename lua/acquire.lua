-- Decides a batch of requests in order. Each is charged to all of its limits or to none.
--
-- KEYS     the state of each hit, request by request; a key may serve several requests
-- ARGV     for each key the hit's parameters in the form of its algorithm; `+` before them joins the
--          hit to the request of the hit before it; `~` after that makes it a shadow, which is charged
--          only if its request is admitted without it, and then for itself alone
-- returns  now, then for each hit what it found before its request was charged, in the two numbers of
--          its algorithm: x, or {x, y} where y is not 0, or {x, wait, reset} of an algorithm that
--          foresees. A hit of a denied request answers -1 - x for x. A hit whose key holds something
--          else answers a string that says so, and its request has changed nothing, unless the hit was
--          a shadow.
--
-- Every key is read before any is written: an error inside a script leaves its earlier writes.

local now = clock()
local reply = { now }

-- Algorithms are made when they are used: a script runs anew for each batch.
local made = {}
local function algorithm(tag)
  if tag == '' then
    return token_bucket
  end
  if not made[tag] then
    made[tag] = tag == 'l' and sliding_log() or tag == 'c' and sliding_counter() or fixed_window()
  end
  return made[tag]
end

local parsed = {}
local function parameters(text)
  local p = parsed[text]
  if not p then
    local shadow, tag = string.match(text, '^%+?(~?)(%a?)')
    p = algorithm(tag).parse(text, now)
    p.shadow = shadow == '~'
    parsed[text] = p
  end
  return p
end

local hits, states, faults, order = {}, {}, {}, {}
for i = 1, #KEYS do
  local key, p = KEYS[i], parameters(ARGV[i])
  hits[i] = p
  if not states[key] and not faults[key] then
    states[key], faults[key] = p.algorithm.read(key, p, now)
    order[#order + 1] = key
  end
end

local fits, x, y = {}, {}, {}
local function decide(first, last)
  local admitted = true
  for i = first, last do
    fits[i] = false
    local p, state = hits[i], states[KEYS[i]]
    if state then
      fits[i], x[i], y[i] = p.algorithm.look(p, state, now)
    end
    admitted = admitted and (fits[i] or p.shadow)
  end
  for i = first, last do
    local p, state = hits[i], states[KEYS[i]]
    local answer = faults[KEYS[i]]
    if state then
      local charged = admitted and fits[i]
      answer = charged and x[i] or -1 - x[i]
      if p.algorithm.foresee then
        answer = { answer, p.algorithm.foresee(p, state, x[i], charged, now) }
      elseif y[i] ~= 0 then
        answer = { answer, y[i] }
      end
      if charged then
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
  if state and state.changed then
    state.algorithm.write(order[i], state, now)
  end
end

return reply
