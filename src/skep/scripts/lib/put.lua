-- put: an add that may meet a job that has its id; what it does to which state is the table of docs/lifecycle.md
--@use record emit place counts keep change life
local put = {}

local function due_of(spec)
  if spec.delay then return now + spec.delay end
  return spec.due or now
end

local function made(id, data, spec)
  local options = spec.options
  if options.lasts then options.expires = now + options.lasts end
  return { id = id, data = data, task = spec.task or '', options = options, due = due_of(spec), generated = spec.generated, life = 0 }
end

-- What this add does to a job that is there, by its flags.
local function change_of(spec, data)
  local how, due = { options = {}, counts = spec.counts }, due_of(spec)
  -- A task goes with the data it is for.
  if spec.data then how.data, how.task = data, spec.task or '' end
  for name, value in pairs(spec.options) do
    if spec.all or spec.only[name] then how.options[name] = value end
  end
  if spec.run_at == true or spec.run_at == 'if_later' then how.earliest = due end
  if spec.run_at == true or spec.run_at == 'if_earlier' then how.latest = due end
  return how
end

-- Gives the outcome of this add and the life it belongs to.
function put.one(id, data, spec)
  local window = tonumber(server('HGET', key.windows, id))
  local raw = server('HGET', key.jobs, id)
  local old = raw and record.read(id, raw)
  local status = raw and place.status(id)
  local ended = raw and keep.hashes[status] ~= nil
  if window and window > now then return { 'ignored', old and old.life or 0 } end
  if raw and (spec.conflict == 'ignore' or spec.conflict == 'unique' and not ended) then return { 'ignored', old.life } end
  if spec.window then
    server('HSET', key.windows, id, now + spec.window)
    server('ZADD', key.timers, now + spec.window, 'w' .. id)
  end
  local job = made(id, data, spec)
  if not raw or ended then
    local before
    if ended then
      job.generated = nil
      before = { previous = keep.summary(old, status) }
      keep.release(old, status)
      change.index({ id = id, options = {} }, { name = old.options.name }, 'e')
      keep.drop_logs(id)
      server('HDEL', key.progress, id)
      server('HDEL', key.states, id)
    end
    life.begin(job, 'a', before)
    return { 'added', job.life }
  end
  if status ~= 'active' then
    status = change.amend(old, status, counts.read(id), change_of(spec, data))
    emit.birth('u', id, record.write(old), { status = status, due = old.due })
    return { 'updated', old.life }
  end
  local twin, how = life.twin(id)
  if not twin then
    life.block(job, 'b', change_of(spec, data))
    return { 'blocked', job.life }
  end
  life.amend_twin(twin, how, change_of(spec, data))
  return { 'updated', twin.life }
end
