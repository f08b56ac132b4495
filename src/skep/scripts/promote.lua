-- promote: scheduled | retrying -> waiting
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, id, life, ...
-- gives a packed list of the ids that this call promoted
--@use steer place record
return steer.each(3, function(job, status)
  if status ~= 'scheduled' and status ~= 'retrying' then return false end
  place.leave(job.id, status, place.priority(job))
  job.due = now
  server('HSET', key.jobs, job.id, record.write(job))
  steer.told('o', job, place.wait(job, 0))
  return true
end)
