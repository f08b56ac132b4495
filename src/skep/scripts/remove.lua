-- remove: waiting | scheduled | retrying | held | blocked | succeeded | failed | cancelled ->
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, id, life, ...
-- gives a packed list of the ids that this call removed
--@use steer place keep life answer
return steer.each(3, function(job, status)
  if status == 'active' then return false end
  steer.told('x', job, status)
  if status == 'blocked' then
    life.drop_twin(job)
  else
    if keep.hashes[status] then keep.release(job, status) else place.leave(job.id, status, place.priority(job)) end
    if job.options.expires then server('ZREM', key.timers, 'e' .. job.id) end
    keep.forget({ job.id })
  end
  answer.ended(job, 'removed', '')
  return true
end)
