-- Decides a batch of requests in order. Each is charged to all of its limits or to none.
--
-- KEYS     the state of each hit, request by request; a key may serve several requests
-- ARGV     for each key the hit's parameters in the form of its algorithm; `+` before them joins the
--          hit to the request of the hit before it
-- returns  now, then for each hit its backlog before the request was charged: x microseconds, or
--          {x, picoseconds} where there are any. A hit of a denied request answers -1 - x for x.
--          A hit whose key holds something else answers a string that says so, and its request has
--          changed nothing.
--
-- Every key is read before any is written: an error inside a script leaves its earlier writes.

local now = clock()
local reply = { now }

local parsed = {}
local function parameters(text)
  local p = parsed[text]
  if not p then
    p = token_bucket.parse(text)
    parsed[text] = p
  end
  return p
end

local states, faults, order = {}, {}, {}
local function open(key, algorithm)
  local state = states[key]
  if not state and not faults[key] then
    local fault
    state, fault = algorithm.read(key)
    states[key], faults[key] = state, fault
    order[#order + 1] = key
  end
  return state
end

local function decide(first, last, hits)
  local admitted = true
  for i = first, last do
    local hit = hits[i]
    if not hit.state then
      admitted = false
    elseif not hit.parameters.algorithm.look(hit, now) then
      admitted = false
    end
  end
  for i = first, last do
    local hit = hits[i]
    local answer = faults[KEYS[i]]
    if hit.state then
      if admitted then
        hit.parameters.algorithm.charge(hit, now)
      end
      answer = admitted and hit.us or -1 - hit.us
      if hit.ps ~= 0 then
        answer = { answer, hit.ps }
      end
    end
    reply[i + 1] = answer
  end
end

local hits, algorithms = {}, {}
for i = 1, #KEYS do
  local p = parameters(ARGV[i])
  hits[i] = { parameters = p, state = open(KEYS[i], p.algorithm) }
  algorithms[KEYS[i]] = p.algorithm
end

local first = 1
for i = 1, #KEYS do
  if i == #KEYS or string.byte(ARGV[i + 1]) ~= 43 then
    decide(first, i, hits)
    first = i + 1
  end
end

for i = 1, #order do
  local key = order[i]
  local state = states[key]
  if state and state.changed then
    algorithms[key].write(key, state, now)
  end
end

return reply
