-- update: waiting | scheduled | retrying | held | active | blocked | succeeded | failed | cancelled -> waiting | scheduled | retrying | held
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, spec, id, life, ...   spec: a packed map: data, task, options by name, due or delay
-- gives a packed list of the ids that this call changed; refuses all of it where a run's data, task or time is meant
--@use steer place counts change life emit record keep
local spec = cmsgpack.unpack(ARGV[3])
local due = spec.delay and now + spec.delay or spec.due
local moves = spec.data or spec.task or due
if moves then
  for i = 4, #ARGV, 2 do
    if server('HEXISTS', key.active, ARGV[i]) == 1 then
      local job, status = steer.find(ARGV[i], ARGV[i + 1])
      local kept = calls.before(now, call)
      if kept then return kept end
      if job and status == 'active' then return calls.answered(now, call, '!JobActive ' .. ARGV[i]) end
    end
  end
end
if spec.options.lasts then spec.options.expires = now + spec.options.lasts end
local only_meta = not moves and spec.options.meta ~= nil
for name in pairs(spec.options) do only_meta = only_meta and name == 'meta' end
local how = { data = spec.data, task = spec.task, options = spec.options, earliest = due, latest = due }

return steer.each(4, function(job, status, twin_change)
  if keep.hashes[status] and not only_meta then return false end
  if twin_change then
    life.amend_twin(job, twin_change, how)
    return true
  end
  status = change.amend(job, status, counts.read(job.id), how)
  emit.birth('u', job.id, record.write(job), { status = status, due = job.due })
  return true
end, true)
