-- Decides a batch of requests in order. Each is charged to all of its limits or to none.
--
-- KEYS     the state of each hit, request by request; a key may serve several requests
-- ARGV     for each key the hit's parameters in the form of its algorithm; `+` before them joins the
--          hit to the request of the hit before it, `~` then makes it a shadow, which does not count
--          for its request, and is charged if that is admitted and it fits itself
-- returns  now, then for each hit what it found before its request was charged, in the two numbers of
--          its algorithm: x, or {x, y} where y is not 0, or {x, wait, reset} of an algorithm that
--          foresees. A hit that was not charged, though it may have been free, answers -1 - x for x.
--          A hit whose key holds something else answers a string that says so, and its request has
--          changed nothing, unless the hit is a shadow.
--
-- Every key is read before any is written: an error inside a script leaves its earlier writes. Each
-- table and each function made here costs the server more than the arithmetic, so they are few, and
-- algorithms other than the bucket are made when they are used.

local now = clock()
local reply, rests = { now }, {}

local parsed, states, made = {}, {}, nil
for i = 1, #KEYS do
  local key, text = KEYS[i], ARGV[i]
  local p = parsed[text]
  if not p then
    local at, tag, shadow = 1, string.byte(text), false
    while tag == 43 or tag == 126 do
      at, shadow = at + 1, tag == 126
      tag = string.byte(text, at)
    end
    if tag < 58 then
      p = token_bucket.parse(text)
    else
      made = made or {}
      made[tag] = made[tag]
        or (tag == 108 and sliding_log or tag == 99 and sliding_counter or tag == 107 and lock
          or fixed_window)()
      p = made[tag].parse(text, now)
    end
    p.shadow = shadow
    parsed[text] = p
  end
  states[key] = states[key] or p.algorithm.read(key, p, now)
end

local last, fits = 0, nil
while last < #KEYS do
  local first, admitted = last + 1, true
  repeat
    last = last + 1
    local p, state = parsed[ARGV[last]], states[KEYS[last]]
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
      reply[last + 1] = x
      if y ~= 0 then
        rests[last] = y
      end
    end
  until last == #KEYS or string.byte(ARGV[last + 1]) ~= 43
  for i = first, last do
    local p, state, y = parsed[ARGV[i]], states[KEYS[i]], rests[i]
    local answer = state.fault
    if not answer then
      local x, charged = reply[i + 1], admitted
      if x < 0 then
        x, charged = -1 - x, false
      end
      answer = charged and x or -1 - x
      if p.algorithm.foresee then
        answer = { answer, p.algorithm.foresee(p, state, x, charged, now) }
      elseif y then
        answer = { answer, y }
      end
      if charged then
        p.algorithm.charge(p, state, x, y or 0, now)
      end
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
