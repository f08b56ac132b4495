-- stage: rows of a write that nothing has decided yet; they show nowhere, and go by themselves after a time
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, token, ttl_ms, count, kind, ...   kind: fresh, then what `add` takes; or upsert, then what `upsert` takes
-- gives how many rows the token has now
--@use calls place
local kept = calls.before(now, call)
if kept then return kept end

local token, count = ARGV[3], tonumber(ARGV[5])
local most = tonumber(server('HGET', key.queue, 'max_waiting'))
local waits = tonumber(server('HGET', key.queue, 'staged_rows') or 0)
if most and place.count() + waits + count > most then return calls.answered(now, call, '!QueueFull ' .. most) end

local known = server('HGET', key.staged, token)
known = known and cmsgpack.unpack(known) or { chunks = 0, rows = 0 }
known.chunks, known.rows = known.chunks + 1, known.rows + count
server('HSET', key.staged, token, cmsgpack.pack(known), token .. ':' .. known.chunks, cmsgpack.pack({ unpack(ARGV, 6) }))
server('HINCRBY', key.queue, 'staged_rows', count)
server('ZADD', key.timers, now + tonumber(ARGV[4]), 's' .. token)
return calls.answered(now, call, '=' .. known.rows)
