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

-- Each table and each function made here costs the server more than the arithmetic, so they are few.

local now = clock()
local reply, rests = { now }, {}

local parsed, states = {}, {}
for i = 1, #KEYS do
  local key, text = KEYS[i], ARGV[i]
  local p = parsed[text]
  if not p then
    p = token_bucket.parse(text)
    parsed[text] = p
  end
  states[key] = states[key] or p.algorithm.read(key)
end

local last = 0
while last < #KEYS do
  local first, admitted = last + 1, true
  repeat
    last = last + 1
    local p, state = parsed[ARGV[last]], states[KEYS[last]]
    if state.fault then
      admitted = false
    else
      local fits, us, ps = p.algorithm.look(p, state, now)
      reply[last + 1] = us
      if ps ~= 0 then
        rests[last] = ps
      end
      admitted = admitted and fits
    end
  until last == #KEYS or string.byte(ARGV[last + 1]) ~= 43
  for i = first, last do
    local p, state, ps = parsed[ARGV[i]], states[KEYS[i]], rests[i]
    local answer = state.fault
    if not answer then
      local us = reply[i + 1]
      if admitted then
        p.algorithm.charge(p, state, us, ps or 0, now)
      else
        us = -1 - us
      end
      answer = ps and { us, ps } or us
    end
    reply[i + 1] = answer
  end
end

for i = 1, #KEYS do
  local state = states[KEYS[i]]
  if state.changed then
    state.changed = false
    state.algorithm.write(KEYS[i], state, now)
  end
end

return reply
