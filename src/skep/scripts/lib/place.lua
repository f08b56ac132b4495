-- place: where an id stands, and its ways into and out of what waits
--@use record waker
local place = {
  lists = { [10] = key.waiting10, [20] = key.waiting20, [30] = key.waiting30, [40] = key.waiting40, [50] = key.waiting50, [60] = key.waiting60 },
}

function place.priority(job)
  return job.options.priority or 40
end

function place.status(id)
  if server('HEXISTS', key.active, id) == 1 then return 'active' end
  if server('ZSCORE', key.scheduled, id) then return 'scheduled' end
  if server('ZSCORE', key.retrying, id) then return 'retrying' end
  if server('HEXISTS', key.held, id) == 1 then return 'held' end
  if server('HEXISTS', key.succeeded, id) == 1 then return 'succeeded' end
  if server('HEXISTS', key.failed, id) == 1 then return 'failed' end
  if server('HEXISTS', key.cancelled, id) == 1 then return 'cancelled' end
  if server('HEXISTS', key.jobs, id) == 1 then return 'waiting' end
  return ''
end

-- Whether there may be something to take; a list may hold but entries that no longer count.
function place.any()
  return server('EXISTS', key.waiting10, key.waiting20, key.waiting30, key.waiting40, key.waiting50, key.waiting60) > 0
end

-- How many jobs may be taken now.
function place.count()
  local count = -tonumber(server('HGET', key.queue, 'stale') or 0)
  for _, list in pairs(place.lists) do count = count + server('LLEN', list) end
  return count
end

-- How many jobs stand where, in the order of `views.Counts`.
function place.counts()
  return {
    place.count(), server('ZCARD', key.scheduled), server('ZCARD', key.retrying), server('HLEN', key.held),
    server('HLEN', key.active) - server('HEXISTS', key.active, ''), server('HLEN', key.blocked),
    server('HLEN', key.succeeded), server('HLEN', key.failed), server('HLEN', key.cancelled),
  }
end

-- The member of a job set aside because nobody who came by knew its task: sorted by task.
function place.aside(task, id)
  return string.char(#task) .. task .. id
end

-- Those who know a task take all there is of it as they have room: they are asked only for the first.
function place.put_aside(task, id)
  local prefix = '[' .. place.aside(task, '')
  if #server('ZRANGE', key.aside, prefix, prefix .. '\255', 'BYLEX', 'LIMIT', 0, 1) == 0 then waker.ask() end
  server('ZADD', key.aside, 0, place.aside(task, id))
end

-- Who knows its task finds it, once it is due.
function place.set_aside(job)
  if job.due > now then
    server('ZADD', key.timers, job.due, 'a' .. job.id)
  else
    place.put_aside(job.task, job.id)
  end
end

-- True if it was.
function place.not_aside(id, task)
  return server('ZREM', key.aside, place.aside(task, id)) + server('ZREM', key.timers, 'a' .. id) > 0
end

-- The way into waiting, scheduled or retrying: by its time and its failures.
function place.wait(job, failures, front)
  if job.due > now then
    local status = (failures or 0) > 0 and 'retrying' or 'scheduled'
    server('ZADD', status == 'retrying' and key.retrying or key.scheduled, job.due, job.id)
    waker.at(job.due)
    return status
  end
  local priority = place.priority(job)
  if front then
    -- An entry further back that no longer counts would be taken for this one.
    if server('HDEL', key.skips, priority .. job.id) == 1 then
      server('HINCRBY', key.queue, 'stale', -server('LREM', place.lists[priority], 0, job.id))
    end
    server('LPUSH', place.lists[priority], job.id)
  else
    server('RPUSH', place.lists[priority], job.id)
  end
  waker.now()
  return 'waiting'
end

-- The way out of an idle state. The entry of a list stays behind and is skipped when its turn comes.
function place.leave(id, status, priority)
  if status == 'waiting' then
    server('HINCRBY', key.skips, priority .. id, 1)
    server('HINCRBY', key.queue, 'stale', 1)
  elseif status == 'held' then
    server('HDEL', key.held, id)
    place.not_aside(id, record.task(server('HGET', key.jobs, id)))
  else
    server('ZREM', status == 'retrying' and key.retrying or key.scheduled, id)
  end
end
