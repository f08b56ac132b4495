-- aside: jobs that nobody who came by could run, kept until somebody comes who can
--@use record emit place counts
local aside = {}

-- Each is an id and a record: of a task unknown to who claims, or of a newer release.
function aside.set(unknown)
  for _, each in ipairs(unknown) do
    local id, raw = each[1], each[2]
    local known = record.known(raw)
    local reason = known and 'unknown task' or 'written by a newer skep'
    server('HSET', key.held, id, reason)
    if known then
      place.put_aside(record.task(raw), id)
      local job = record.read(id, raw)
      emit.event('h', id, string.sub(raw, 1, record.head(raw)), { status = 'held', reason = reason, due = job.due })
    end
  end
end

-- Those of known tasks go back to the front: at most so many, or those left over would be set aside again.
function aside.take_back(tasks, limit)
  for _, task in ipairs(tasks) do
    if limit == 0 then return end
    local prefix = '[' .. place.aside(task, '')
    local found = server('ZRANGE', key.aside, prefix, prefix .. '\255', 'BYLEX', 'LIMIT', 0, limit)
    limit = limit - #found
    for i = #found, 1, -1 do
      local id = string.sub(found[i], #task + 2)
      local job = record.read(id, server('HGET', key.jobs, id))
      place.leave(id, 'held')
      local status = place.wait(job, counts.read(id).failures, true)
      emit.event('e', id, record.write_head(job), { status = status, due = job.due })
    end
  end
end
