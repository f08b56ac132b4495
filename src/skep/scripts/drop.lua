-- drop: all jobs go, running ones too; workers, settings, events and their numbers stay
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call
-- gives how many unfinished lives it ended
--@use calls emit place life keep answer
local kept = calls.before(now, call)
if kept then return kept end
local live, standing = 0, place.counts()
for k = 1, 6 do live = live + standing[k] end
for _, id in ipairs(server('HKEYS', key.awaited)) do
  local raw = server('HGET', key.jobs, id)
  if raw then answer.ended(record.read(id, raw), 'removed', '') end
  local twin = life.twin(id)
  if twin then answer.ended(twin, 'removed', '') end
end
server(
  'UNLINK', key.jobs, key.waiting10, key.waiting20, key.waiting30, key.waiting40, key.waiting50, key.waiting60, key.skips, key.scheduled, key.retrying, key.held, key.aside,
  key.active, key.blocked, key.stops, key.states, key.progress, key.logs, key.succeeded, key.failed, key.cancelled,
  key.pruning_succeeded, key.pruning_failed, key.pruning_cancelled, key.timers, key.windows, key.names, key.awaited
)
server('HSET', key.active, '', string.rep('-', 65))
server('HDEL', key.queue, 'stale', 'exempt_succeeded', 'exempt_failed', 'exempt_cancelled')
server('HINCRBY', key.queue, 'epoch', 1)
emit.event('q', '', '', { live = live })
emit.flush(calls.by(call))
return calls.answered(now, call, '=' .. live)
