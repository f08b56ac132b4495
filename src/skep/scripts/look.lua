-- look: all that is known of some ids, as far as it fits into a trip, and of one at least
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, id, ...
-- gives for each id nothing, or: record, status, what goes with that (lease, reason or ending), counts, progress, stop request, twin's record
--@use place keep
local found, size = {}, 0
for i = 3, #ARGV do
  if size > 262144 then break end
  local id = ARGV[i]
  local raw = server('HGET', key.jobs, id)
  if raw then
    local status = place.status(id)
    local more = { active = key.active, held = key.held, succeeded = key.succeeded, failed = key.failed, cancelled = key.cancelled }
    local with = more[status] ~= nil and server('HGET', more[status], id)
    local twin = server('HGET', key.blocked, id)
    size = size + #raw + #(with or '') + #(twin or '')
    found[#found + 1] = {
      raw, status, with, server('HGET', key.states, id), server('HGET', key.progress, id),
      server('HGET', key.stops, id), twin and cmsgpack.unpack(twin)[1],
    }
  else
    found[#found + 1] = false
  end
end
return found
