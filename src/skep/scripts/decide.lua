-- decide: a write takes place, whole: its staged rows are pinned, and will be moved whatever happens to who wrote them
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, write, remember_ms, token, ...
-- gives 'decided', or 'known' where this write was decided before; refuses all where the rows of a token are gone
--@use calls
local kept = calls.before(now, call)
if kept then return kept end

local write, tokens, rows = ARGV[3], {}, 0
if server('HEXISTS', key.writes, write) == 1 then return calls.answered(now, call, '=known') end
for i = 5, #ARGV do
  local known = server('HGET', key.staged, ARGV[i])
  if not known then return calls.answered(now, call, '!StagingGone ' .. ARGV[i]) end
  tokens[#tokens + 1] = ARGV[i]
  rows = rows + cmsgpack.unpack(known).rows
end
for _, token in ipairs(tokens) do server('ZREM', key.timers, 's' .. token) end
local state = { rows = rows, added = 0, updated = 0, blocked = 0, ignored = 0, at = now, left = tokens }
server('HSET', key.writes, write, cmsgpack.pack(state))
server('ZADD', key.timers, now + tonumber(ARGV[4]), 'f' .. write)
if #tokens > 0 then server('RPUSH', key.moving, write) end
return calls.answered(now, call, '=decided')
