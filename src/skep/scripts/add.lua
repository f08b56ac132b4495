-- add:  -> waiting | scheduled
--
-- Jobs with ids made by the client, which nobody has used before, alike in all but id and data.
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, when, priority, flags, tail, largest, id, data, ...   as `fresh.add` takes them
-- gives '', all were added
--@use calls emit place fresh
--@later keep
local kept = calls.before(now, call)
if kept then return kept end

local most = tonumber(server('HGET', key.queue, 'max_waiting'))
if most and place.count() + (#ARGV - 7) / 2 > most then return calls.answered(now, call, '!QueueFull ' .. most) end

fresh.add(ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7]), ARGV, 8)
-- Where no worker has come by for a while, adds make room for themselves.
if now > tonumber(server('HGET', key.queue, 'clock') or 0) + 1000 then later_keep().prune_all(2) end
emit.flush(calls.by(call))
return calls.answered(now, call, '=')
