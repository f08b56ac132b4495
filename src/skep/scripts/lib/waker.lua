-- waker: at most one marker that there is something to take, and the duty to come back when the next job is due
local waker = {}

function waker.now()
  if server('EXISTS', key.wake) == 0 then server('RPUSH', key.wake, '1') end
end

-- Something is due at this time: wake somebody, unless a worker will come by itself until then.
function waker.at(due)
  local known = server('HGET', key.queue, 'timer_at')
  if not known or tonumber(known) > due then waker.now() end
end

-- Whether nobody comes by in time for what is due then, if the duty is for `at`: or whoever has it is late.
function waker.is_due(due, at)
  return due > 0 and (not at or at > due or at < now - 50)
end

-- Something was set aside for want of a worker that knows its task: idle ones are asked, each once.
function waker.ask()
  server('HSET', key.queue, 'asking', server('ZCARD', key.leases))
  waker.now()
end

-- The marker goes to the worker that has waited longest. As many markers as there are workers reach all that wait.
function waker.ask_next()
  if tonumber(server('HGET', key.queue, 'asking') or 0) <= 0 or server('EXISTS', key.aside) == 0 then
    server('HDEL', key.queue, 'asking')
    return false
  end
  if server('EXISTS', key.wake) == 0 then
    server('HINCRBY', key.queue, 'asking', -1)
    waker.now()
  end
  return true
end

-- A worker is gone: with it the duty it had, and maybe a marker it had taken.
function waker.left(worker)
  if server('HGET', key.queue, 'timer_by') == worker then server('HDEL', key.queue, 'timer_by', 'timer_at') end
  waker.now()
end
