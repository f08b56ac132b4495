-- hold: waiting | scheduled | retrying -> held
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, reason, id, life, ...
-- gives a packed list of the ids that this call held
--@use steer place
return steer.each(4, function(job, status)
  if not steer.idle[status] then return false end
  place.leave(job.id, status, place.priority(job))
  server('HSET', key.held, job.id, ARGV[3])
  steer.told('h', job, 'held', { reason = ARGV[3] })
  return true
end)
