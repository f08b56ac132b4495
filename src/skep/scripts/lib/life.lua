-- life: how a life begins and ends; the only place where a twin goes on, a series repeats or a failure job is written
--@use record emit place counts keep change answer
local life = { codes = { succeeded = 'y', failed = 'f', cancelled = 'c' } }
local merges_known = 20

-- A life begins, named after its event, and waits for its time. Returns its status.
function life.begin(job, code, known)
  job.created, job.due = now, job.due or now
  if not job.generated then job.life = emit.next() end
  local raw = record.write(job)
  server('HSET', key.jobs, job.id, raw)
  if known then counts.write(job.id, known) end
  change.index(job, {}, 'e')
  emit.birth(code, job.id, raw)
  return place.wait(job, 0)
end

-- A twin begins beside the run of its id. `how`: what its adds would do to a waiting job.
function life.block(job, code, how)
  job.created, job.due, job.life = now, job.due or now, emit.next()
  local raw = record.write(job)
  server('HSET', key.blocked, job.id, cmsgpack.pack({ raw, how }))
  change.index(job, {}, 't')
  emit.birth(code, job.id, raw, { status = 'blocked' })
end

-- The twin of an id: its job and its change.
function life.twin(id)
  local packed = server('HGET', key.blocked, id)
  if not packed then return nil end
  local both = cmsgpack.unpack(packed)
  return record.read(id, both[1]), both[2]
end

-- One more add, or an update, of a twin.
function life.amend_twin(twin, how, more)
  local before = {}
  for name, value in pairs(twin.options) do before[name] = value end
  change.apply(twin, {}, more)
  local raw = record.write(twin)
  server('HSET', key.blocked, twin.id, cmsgpack.pack({ raw, change.chain(how, more) }))
  change.index(twin, before, 't')
  emit.birth('u', twin.id, raw, { status = 'blocked', due = twin.due })
end

function life.drop_twin(job)
  server('HDEL', key.blocked, job.id)
  if job.options.expires then server('ZREM', key.timers, 't' .. job.id) end
end

-- The twin's adds happen to the job that waits, as if they came now; its own life is over.
function life.merge(twin, how, job, status, known)
  life.drop_twin(twin)
  -- Who holds a handle of the twin finds what became of it.
  known.merged = known.merged or {}
  table.insert(known.merged, 1, twin.life)
  known.merged[merges_known + 1] = nil
  status = change.amend(job, status, known, how)
  local head = record.write_head(twin)
  emit.event('m', twin.id, head, { into = job.life, status = status, due = job.due })
  answer.ended(twin, 'merged', job.life)
end

-- Whether a twin of this life was merged into the one of which so much is known.
function life.was_merged(known, number)
  for _, each in ipairs(known.merged or {}) do
    if each == number then return true end
  end
  return false
end

local function stamp(ms)
  return ms and string.format('%d', ms) or 'null'
end

-- The failed job as its failure handler gets it.
local function as_json(job, known, how)
  local fields = {
    '"id":' .. cjson.encode(job.id), '"life":' .. stamp(job.life), '"task":' .. cjson.encode(job.task),
    '"name":' .. (job.options.name and cjson.encode(job.options.name) or 'null'), '"data":' .. job.data,
    '"meta":' .. (job.options.meta or 'null'), '"status":"failed"', '"priority":' .. (job.options.priority or 40),
    '"attempts":' .. (known.attempts or 0), '"failures":' .. (known.failures or 0), '"stalls":' .. (known.stalls or 0),
    '"timeouts":' .. (known.timeouts or 0), '"created":' .. stamp(job.created), '"due":' .. stamp(job.due),
    '"began":' .. stamp(known.began), '"finished":' .. stamp(now), '"error":' .. (how.text ~= '' and how.text or 'null'),
  }
  return '{' .. table.concat(fields, ',') .. '}'
end

local function write_failure_job(seq, job, known, how)
  if string.sub(job.id, 1, 8) == 'failure-' then return end
  local handlers = server('HGET', key.queue, 'on_failure')
  handlers = handlers and cmsgpack.unpack(handlers) or {}
  local task = handlers[job.task] and 'on_failure:' .. job.task or handlers['*'] and 'on_failure'
  if not task then return end
  -- How often and when it is tried is said by its handler, as with every task.
  local options = { priority = 20 }
  local data = as_json(job, known, how)
  life.begin({ id = 'failure-' .. seq, generated = true, life = 0, task = task, options = options, data = data }, 'a')
end

-- The life that follows in a series; `next_due`: of a cron line, worked out by who knows the line.
local function next_life(job, next_due)
  local again = job.options.again
  if not again or again == 0 then return nil end
  local options = {}
  for name, value in pairs(job.options) do options[name] = value end
  local due = now + (job.options.every or 300000)
  if job.options.cron then due = math.max(now, next_due or now + 300000) end
  if again ~= true then options.again = again - 1 end
  if options.cron then options.slot = due end
  options.expires = options.lasts and due + options.lasts or nil
  return { id = job.id, task = job.task, options = options, data = job.data, due = due }
end

local function story(job, known, how)
  local details = { reason = how.reason, lease = how.lease, run = (known.runs or 0), began = known.began }
  for _, name in ipairs({ 'attempts', 'failures', 'stalls', 'timeouts' }) do details[name] = known[name] end
  if how.status == 'succeeded' then emit.kept(details, 'result', how.text) end
  if how.status == 'failed' then details.error = how.text end
  return details
end

-- A life ends as `how.status`, wherever its id stood: the caller has taken it away from there.
-- `how`: status, text (result or error), reason, lease, next_due, twin (true where the twin itself ends).
function life.over(job, known, how)
  local follows = next_life(job, how.next_due)
  local details = story(job, known, how)
  details.next = follows and follows.due
  local seq = emit.event(life.codes[how.status], job.id, record.write_head(job), details)
  if job.options.expires then server('ZREM', key.timers, (how.twin and 't' or 'e') .. job.id) end
  answer.ended(job, how.status, how.status == 'cancelled' and how.reason or how.text)
  if how.status == 'failed' then write_failure_job(seq, job, known, how) end
  if how.twin then
    server('HDEL', key.blocked, job.id)
    if follows then
      life.block(follows, 'i', change.chain(how.change, { earliest = follows.due, latest = follows.due }))
    end
    return
  end
  local twin, twin_change = life.twin(job.id)
  local before = { previous = keep.remember(job, known, how.status, now, how.status == 'failed' and how.text) }
  if follows then
    life.begin(follows, 'i', before)
    server('HDEL', key.progress, job.id)
    if twin then life.merge(twin, twin_change, follows, place.status(job.id), before) end
  elseif twin then
    life.unblock(twin, job, before)
  else
    -- Of a life that succeeded at once there is nothing to remember.
    if how.status ~= 'succeeded' or known.runs ~= 1 or known.previous or known.merged then counts.write(job.id, known) end
    local lease = how.lease or ''
    local text = how.status == 'cancelled' and how.reason or how.text
    keep.finish(job, how.status, struct.pack('>I6B', now, #lease) .. lease .. (text or ''))
  end
end

-- The twin goes on in place of the life that ended.
function life.unblock(twin, ended, before)
  server('HDEL', key.blocked, twin.id)
  change.index(twin, ended.options, 'e')
  if twin.options.expires then
    server('ZREM', key.timers, 't' .. twin.id)
    server('ZADD', key.timers, twin.options.expires, 'e' .. twin.id)
  end
  server('HSET', key.jobs, twin.id, record.write(twin))
  server('HDEL', key.progress, twin.id)
  counts.write(twin.id, before)
  local status = place.wait(twin, 0)
  emit.event('n', twin.id, record.write_head(twin), { status = status, due = twin.due })
end
