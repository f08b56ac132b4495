-- upsert:  | waiting | scheduled | retrying | held | active | blocked | succeeded | failed | cancelled -> waiting | scheduled | retrying | held | blocked
--
-- Adds of which each may meet a job that has its id.
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, id, data, spec, ...   spec: a packed map, see `lifecycle.upsert`
-- gives a packed list: of each job its outcome and life
--@use calls record emit place put
local kept = calls.before(now, call)
if kept then return kept end

-- All checks come first: a script does not roll back.
local specs, fresh = {}, 0
for i = 3, #ARGV, 3 do
  local id, spec = ARGV[i], cmsgpack.unpack(ARGV[i + 2])
  local raw = server('HGET', key.jobs, id)
  local known = raw and true or false
  if known and not record.known(raw) then return calls.answered(now, call, '!NewerRecord ' .. id) end
  if known and spec.conflict == 'raise' then return calls.answered(now, call, '!JobExists ' .. id) end
  if not known then fresh = fresh + 1 end
  specs[#specs + 1] = spec
end
local most = tonumber(server('HGET', key.queue, 'max_waiting'))
if most and fresh > 0 and place.count() + fresh > most then return calls.answered(now, call, '!QueueFull ' .. most) end

local outcomes = {}
for k, spec in ipairs(specs) do outcomes[k] = put.one(ARGV[3 * k], ARGV[3 * k + 1], spec) end
emit.flush(calls.by(call))
return calls.answered(now, call, '=' .. cmsgpack.pack(outcomes))
