-- release: held -> waiting | scheduled | retrying
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, id, life, ...
-- gives a packed list of the ids that this call released
--@use steer place counts
return steer.each(3, function(job, status)
  if status ~= 'held' then return false end
  place.leave(job.id, status)
  steer.told('e', job, place.wait(job, counts.read(job.id).failures))
  return true
end)
