-- revive: succeeded | failed | cancelled -> waiting
--
-- The same data and options in a new life, due now; it no longer expires.
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, id, life, ...
-- gives a packed list of the ids that this call revived
--@use steer keep life
return steer.each(3, function(job, status)
  if not keep.hashes[status] then return false end
  local before = { previous = keep.summary(job, status) }
  keep.release(job, status)
  server('HDEL', key.progress, job.id)
  job.options.expires, job.options.lasts, job.due, job.generated = nil, nil, now, nil
  if job.options.slot then job.options.slot = now end
  life.begin(job, 'v', before)
  return true
end)
