-- steer: the same act on each of many jobs, given as id and life
-- life: a number; '' for whatever the id is now; a status and a number for a job only if it still stands so
--@use calls record emit place counts keep change life
local steer = {}

-- The job that is meant, where it stands, and for a twin its change. False: that life is over.
function steer.find(id, want)
  local raw = server('HGET', key.jobs, id)
  if not raw or not record.known(raw) then return nil end
  local job = record.read(id, raw)
  local stands, number = string.match(want, '^(%l+) (%d+)$')
  if stands then
    want = tonumber(number)
    local status = place.status(id)
    if status == stands and job.life == want then return job, status end
    local twin, how = life.twin(id)
    if stands == 'blocked' and twin and twin.life == want then return twin, 'blocked', how end
    return nil
  end
  if want == '' or tonumber(want) == job.life then return job, place.status(id) end
  local twin, how = life.twin(id)
  if twin and tonumber(want) == twin.life then return twin, 'blocked', how end
  -- A handle of a series acts on the series, in whatever life that is; one of a second job that was merged on what it is in.
  if job.options.again or life.was_merged(counts.read(id), tonumber(want)) then return job, place.status(id) end
  return false
end

-- Calls act(job, status, change of a twin, life) for every id from ARGV[first] on; gives the ids for which it was true.
-- `grows`: it takes memory, and is refused on a full server; after a first write that frees memory the rest passes.
function steer.each(first, act, grows)
  local kept = calls.before(now, call)
  if kept then return kept end
  if not grows then server('HDEL', key.queue, '') end
  for i = first, #ARGV, 2 do
    if steer.find(ARGV[i], ARGV[i + 1]) == false then
      return calls.answered(now, call, '!StaleJob ' .. ARGV[i + 1] .. ' ' .. ARGV[i])
    end
  end
  local changed = {}
  for i = first, #ARGV, 2 do
    -- Looked for again: what was done to those before may have changed it, or it may be named twice.
    local job, status, how = steer.find(ARGV[i], ARGV[i + 1])
    if job and act(job, status, how, ARGV[i + 1]) then changed[#changed + 1] = job.id end
  end
  emit.flush(calls.by(call))
  return calls.answered(now, call, '=' .. cmsgpack.pack(changed))
end

-- What is told of a job that has moved.
function steer.told(code, job, status, details)
  details = details or {}
  details.status, details.due = status, job.due
  emit.event(code, job.id, record.write_head(job), details)
end

steer.idle = { waiting = true, scheduled = true, retrying = true }
