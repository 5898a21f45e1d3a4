-- Decides a batch of requests of which each has one token bucket and nothing else, as most do. It does
-- what acquire.lua would, in one loop that calls no functions and before anything else is made, and ends
-- the script.
--
-- KEYS     as those of acquire.lua
-- ARGV     as those of acquire.lua
-- returns  what acquire.lua does

local runs, plain = {}, true
for run = 1, #ARGV / 2 do
  runs[run] = parse_bucket(ARGV[2 * run])
  plain = plain and runs[run]
end

if plain then
  local keys, get, find = KEYS, redis.pcall, string.find
  -- By key: the time at which the bucket is full and, where there are any, the picoseconds above it;
  -- what the key held of these; and, if it is to be written, by whose parameters.
  local full, rest, held, uneven, changed = {}, nil, {}, nil, {}
  local reply, last = { now }, 0
  for run, p in ipairs(runs) do
    local first = last + 1
    local iu, ip, cu, cp = p.iu, p.ip, p.cu, p.cp
    local charges = iu > 0 or ip > 0
    if ip > 0 or cp > 0 then
      rest = rest or {}
    end
    last = last + ARGV[2 * run - 1]
    for i = first, last do
      local key = keys[i]
      local us, fault = full[key], nil
      if not us then
        local value = get('GET', key)
        if not value then
          us = 0
        elseif type(value) == 'table' then
          fault = value.err
        elseif #value <= 16 and find(value, '^[1-9]%d*$') then
          us = tonumber(value)
          held[key] = us
        else
          local whole, picos = string.match(value, '^([1-9]%d*)%.(%d+)$')
          if whole and #whole <= 16 and #picos == 6 then
            us = tonumber(whole)
            rest, uneven = rest or {}, uneven or {}
            held[key], rest[key], uneven[key] = us, tonumber(picos), true
          else
            fault = NO_BUCKET
          end
        end
      end
      if fault then
        reply[i + 1] = fault
      else
        local backlog, ps = us - now, rest and rest[key] or 0
        if backlog < 0 then
          backlog, ps = 0, 0
        elseif backlog > cu or (backlog == cu and ps > cp) then
          -- The clock stepped back: no key is locked for longer than a full refill.
          backlog, ps = cu, cp
          us, changed[key] = now + cu, p
          if rest then
            rest[key] = cp
          end
        end
        local after, picos = backlog + iu, ps + ip
        if picos >= 1000000 then
          after, picos = after + 1, picos - 1000000
        end
        local answer = -1 - backlog
        if after < cu or (after == cu and picos <= cp) then
          answer = backlog
          if charges then
            us, changed[key] = now + after, p
            if rest then
              rest[key] = picos
            end
          end
        end
        full[key] = us
        reply[i + 1] = ps == 0 and answer or { answer, ps }
      end
    end
  end
  for key, p in pairs(changed) do
    local was = held[key]
    local whole = was and not (uneven and uneven[key])
    write_bucket(p, key, full[key], rest and rest[key] or 0, was, whole)
  end
  return reply
end
