-- leave: a worker goes; what it still holds is returned, or stalled where it died
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, worker, how   how: returned or stalled
-- gives whether something is left for upkeep to do
--@use emit tick
local worker, how = ARGV[3], ARGV[4]
server('HDEL', key.queue, '')
if server('ZSCORE', key.leases, worker) then
  tick.bury(worker, how)
  tick.reap({}, 60)
  emit.event('3', '', '', { worker = worker })
end
emit.flush(worker)
return server('EXISTS', key.dead)
