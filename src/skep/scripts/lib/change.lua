-- change: what an add or an update does to a job that is there already
--
-- A change has `data`, `task`, `options` by name (false: none, whatever the task or the queue says), `counts` (back to zero), and two times: setting a time, moving it
-- later and moving it earlier are all min(max(due, earliest), latest), so that two numbers remember any sequence of adds.
--@use record emit place counts keep
local change = {}

function change.due(job_due, how)
  local due = job_due
  if how.earliest and due < how.earliest then due = how.earliest end
  if how.latest and due > how.latest then due = how.latest end
  return due
end

-- The one after the other.
function change.chain(first, second)
  local both = { data = second.data or first.data, task = second.task or first.task, options = {} }
  for name, value in pairs(first.options or {}) do both.options[name] = value end
  for name, value in pairs(second.options or {}) do both.options[name] = value end
  both.counts = first.counts or second.counts
  both.earliest = first.earliest and change.due(first.earliest, second) or second.earliest
  both.latest = first.latest and change.due(first.latest, second) or second.latest
  return both
end

-- Labels and expiry follow the options.
function change.index(job, before, timer)
  local was, is = before.name, job.options.name
  if was ~= is and timer == 'e' then
    if was then server('ZREM', key.names, keep.label(was, job.id)) end
    if is then server('ZADD', key.names, 0, keep.label(is, job.id)) end
  end
  if before.expires ~= job.options.expires then
    if job.options.expires then
      server('ZADD', key.timers, job.options.expires, timer .. job.id)
    else
      server('ZREM', key.timers, timer .. job.id)
    end
  end
end

-- Applies it to the tables of a job and its counts; nothing is written.
function change.apply(job, known, how)
  job.data = how.data or job.data
  job.task = how.task or job.task
  for name, value in pairs(how.options or {}) do job.options[name] = value end
  if how.counts then known.failures, known.stalls, known.timeouts = nil, nil, nil end
  job.due = change.due(job.due, how)
end

-- Changes a job where it is: it keeps its place unless its priority changes or its time moves it.
function change.amend(job, status, known, how)
  local priority, due, before = place.priority(job), job.due, {}
  local aside = status == 'held' and place.not_aside(job.id, job.task)
  for name, value in pairs(job.options) do before[name] = value end
  change.apply(job, known, how)
  local still = status == 'waiting' and (job.due <= now or job.due == due)
  local idle = status == 'waiting' or status == 'scheduled' or status == 'retrying'
  if idle and not (still and place.priority(job) == priority) then
    place.leave(job.id, status, priority)
    status = place.wait(job, known.failures)
  end
  server('HSET', key.jobs, job.id, record.write(job))
  if aside then place.set_aside(job) end
  counts.write(job.id, known)
  change.index(job, before, 'e')
  return status
end
