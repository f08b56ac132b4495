-- decide: a write takes place, whole: its staged rows are pinned, and will be moved whatever happens to who wrote them
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, write, remember_ms, query, batch, query_ms, token, ...   query: of a stream, whose batches come in order; else ''
-- gives 'decided', or 'known' where this write was decided before; refuses all where the rows of a token are gone
--@use calls
local kept = calls.before(now, call)
if kept then return kept end

local write, query, batch, tokens, rows = ARGV[3], ARGV[5], tonumber(ARGV[6]), {}, 0
local last = query ~= '' and server('HGET', key.writes, '=' .. query)
if server('HEXISTS', key.writes, write) == 1 or last and cmsgpack.unpack(last).batch >= batch then
  return calls.answered(now, call, '=known')
end
for i = 8, #ARGV do
  local packed = server('HGET', key.staged, ARGV[i])
  local known = packed and cmsgpack.unpack(packed)
  if not known or known.going then return calls.answered(now, call, '!StagingGone ' .. ARGV[i]) end
  tokens[#tokens + 1] = ARGV[i]
  rows = rows + known.rows
end
for _, token in ipairs(tokens) do server('ZREM', key.timers, 's' .. token) end

local function remember(field, state, ms)
  server('HSET', key.writes, field, cmsgpack.pack(state))
  server('ZADD', key.timers, now + tonumber(ms), 'f' .. field)
end

remember(write, { rows = rows, added = 0, updated = 0, blocked = 0, ignored = 0, at = now, left = tokens }, ARGV[4])
if query ~= '' then remember('=' .. query, { batch = batch, left = {} }, ARGV[7]) end
if #tokens > 0 then server('RPUSH', key.moving, write) end
return calls.answered(now, call, '=decided')
