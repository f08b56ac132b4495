-- cancel: waiting | scheduled | retrying | held | blocked | active -> cancelled | active
--
-- Of a run it is a stop request that lasts; by id it ends the twin too.
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, reason, keep, active, id, life, ...   keep: ms, or '' for the job's own; active: 0 leaves runs alone
-- gives a packed list of the ids that this call cancelled, or asked to stop
--@use steer record place life counts keep
local reason, kept_for = ARGV[3], ARGV[4]

local function series_ends(job)
  job.options.again = nil
  if kept_for ~= '' then job.options.keep = tonumber(kept_for) end
end

local function cancel_twin(twin, how)
  series_ends(twin)
  life.over(twin, {}, { status = 'cancelled', reason = reason, twin = true, change = how })
end

return steer.each(6, function(job, status, how, want)
  if keep.hashes[status] then return false end
  if status == 'blocked' then
    cancel_twin(job, how)
    return true
  end
  if status == 'active' then
    -- A handle means its own life, an id all that goes by it.
    local twin, twin_change
    if want == '' then twin, twin_change = life.twin(job.id) end
    if ARGV[5] ~= '0' then
      server(kept_for == '' and 'HSETNX' or 'HSET', key.stops, job.id, kept_for)
      steer.told('u', job, 'active', { stop = true })
    end
    if twin then cancel_twin(twin, twin_change) end
    return ARGV[5] ~= '0' or twin ~= nil
  end
  place.leave(job.id, status, place.priority(job))
  series_ends(job)
  server('HSET', key.jobs, job.id, record.write(job))
  life.over(job, counts.read(job.id), { status = 'cancelled', reason = reason })
  return true
end)
