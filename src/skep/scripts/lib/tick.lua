-- tick: all that time brings, in one slice: fenced workers, expired and due jobs, retention; claims and renewals do it in passing
--@use record emit place counts keep life run mover waker due holding
local tick = { wanted = {} }

-- After a silence, or a backward step of the clock, nobody can be blamed for not having renewed: all leases begin anew.
local function watch_the_clock(lease)
  local seen = server('HMGET', key.queue, 'clock', 'renewed')
  local clock, renewed = tonumber(seen[1] or 0), tonumber(seen[2] or now)
  if now < clock or now - renewed > lease / 2 then
    local told = server('HGETALL', key.workers)
    for i = 1, #told, 2 do
      local length = cmsgpack.unpack(told[i + 1]).lease
      server('ZADD', key.leases, 'XX', now + length, told[i])
    end
    server('HSET', key.queue, 'clock', now, 'renewed', now)
  elseif now ~= clock then
    server('HSET', key.queue, 'clock', now)
  end
end

-- All that a worker runs ends in this way: the runs of its claims up to now, for it may join again before they are found.
function tick.bury(worker, how)
  local last = server('HGET', key.claims, worker)
  server('ZREM', key.leases, worker)
  server('HSET', key.dead, worker, how .. ' ' .. (last and string.sub(last, 1, 16) or '0'))
  server('HDEL', key.workers, worker)
  server('HDEL', key.claims, worker)
  waker.left(worker)
end

local function fence()
  for _, worker in ipairs(server('ZRANGE', key.leases, '-inf', now, 'BYSCORE', 'LIMIT', 0, 10)) do
    tick.bury(worker, 'stalled')
    emit.event('4', '', '', { worker = worker })
  end
end

-- The next due time of a cron series is worked out by the caller: it asks, and finds it in `nexts` the next time.
local function next_due(job, nexts, started)
  if not (job.options.cron and job.options.again) then return true, nil end
  local due = nexts[job.id .. ' ' .. job.life]
  if not due then
    local began = counts.read(job.id).began or started
    tick.wanted[#tick.wanted + 1] = { job.id, job.life, job.options.cron, job.options.tz or 'UTC', job.options.slot or job.due, began or now }
  end
  return due ~= nil, due
end

local STALL = '{"type":"WorkerDied","message":"its worker fell silent: it died, was frozen or lost its connection","kind":"stall"}'

-- One slice of the runs of dead workers; a round sees all runs of those that were dead when it began.
function tick.reap(nexts, limit)
  local ended = server('HGETALL', key.dead)
  if #ended == 0 then return end
  local how, cursor, waits = {}, server('HGET', key.queue, 'reaped') or '0', false
  for i = 1, #ended, 2 do how[ended[i]] = { string.match(ended[i + 1], '^(%a+) (%d+)$') } end
  if cursor == '0' then server('HSET', key.queue, 'reaping', cmsgpack.pack(ended)) end
  local found = server('HSCAN', key.active, cursor, 'COUNT', limit)
  for i = 1, #found[2], 2 do
    local id, lease = found[2][i], found[2][i + 1]
    local worker, claim = string.match(lease, '^(%S+) (%d+)')
    local word, last = unpack(how[worker] or {})
    local raw = word and tonumber(claim) <= tonumber(last) and server('HGET', key.jobs, id)
    if raw then
      local job, known, due = record.read(id, raw), true, nil
      if job.options.cron and run.is_last(job, word) then known, due = next_due(job, nexts, tonumber(string.match(lease, ' (%d+)$'))) end
      -- HSCAN may give a field twice.
      if known and server('HDEL', key.active, id) == 1 then
        run.leave(id, raw, lease, word, word == 'stalled' and STALL or '', due)
      end
      waits = waits or not known
    end
  end
  if waits then return end
  server('HSET', key.queue, 'reaped', found[1])
  if found[1] == '0' then
    local gone = cmsgpack.unpack(server('HGET', key.queue, 'reaping'))
    for i = 1, #gone, 2 do
      if server('HGET', key.dead, gone[i]) == gone[i + 1] then server('HDEL', key.dead, gone[i]) end
    end
  end
end

local happens = {}

-- Its first run had not begun by then.
function happens.e(id, nexts)
  local raw, status = server('HGET', key.jobs, id), place.status(id)
  if not raw or status == 'active' then return true end
  local job, known = record.read(id, raw), counts.read(id)
  if known.began or keep.hashes[status] then return true end
  local fine, due = next_due(job, nexts)
  if not fine then return false end
  place.leave(id, status, place.priority(job))
  life.over(job, known, { status = 'cancelled', reason = 'expired', next_due = due })
  return true
end

function happens.t(id, nexts)
  local job, how = life.twin(id)
  if not job then return true end
  local fine, due = next_due(job, nexts)
  if not fine then return false end
  life.over(job, {}, { status = 'cancelled', reason = 'expired', next_due = due, twin = true, change = how })
  return true
end

-- A job that was set aside is due, unless what happened just before has moved it.
function happens.a(id)
  if server('HEXISTS', key.held, id) == 0 then return true end
  place.put_aside(record.task(server('HGET', key.jobs, id)), id)
  return true
end

-- It was kept for a time of its own.
function happens.k(id)
  local raw, status = server('HGET', key.jobs, id), place.status(id)
  if raw and keep.hashes[status] then
    keep.release(record.read(id, raw), status)
    keep.forget({ id })
  end
  return true
end

function happens.w(id)
  server('HDEL', key.windows, id)
  return true
end

-- Staged rows whose time is over.
function happens.s(token)
  return mover.sweep(token)
end

-- A write is forgotten, unless rows of it still move.
function happens.f(write)
  local state = server('HGET', key.writes, write)
  if state and #cmsgpack.unpack(state).left > 0 then return false end
  server('HDEL', key.writes, write)
  return true
end

function tick.timers(nexts, limit)
  for _, member in ipairs(server('ZRANGE', key.timers, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)) do
    if happens[string.sub(member, 1, 1)](string.sub(member, 2), nexts) then
      -- A series that goes on may have set the same timer again, later.
      local at = server('ZSCORE', key.timers, member)
      if at and tonumber(at) <= now then server('ZREM', key.timers, member) end
    end
  end
end

-- `nexts`: due times that an earlier slice asked for. Returns whether something overdue is left that a claim must not overtake, and
-- whether something else is.
function tick.slice(lease, nexts, limit)
  watch_the_clock(lease)
  fence()
  tick.reap(nexts, limit)
  tick.timers(nexts, limit)
  due.promote(limit)
  local more = keep.prune_all(2)
  mover.step()
  holding.pass()
  local overdue = server('ZRANGE', key.timers, 0, 0, 'WITHSCORES')[2]
  return overdue ~= nil and tonumber(overdue) <= now, more
end
