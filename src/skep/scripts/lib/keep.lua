-- keep: finished jobs, for as long as they are wanted; pruned in slices by whoever comes by
--@use record
local keep = {
  hashes = { succeeded = key.succeeded, failed = key.failed, cancelled = key.cancelled },
  chunks = { succeeded = key.pruning_succeeded, failed = key.pruning_failed, cancelled = key.pruning_cancelled },
  ages = { succeeded = 3600000, failed = 604800000, cancelled = 3600000 },
  known = {},
}

-- How long finished jobs of a status are kept, and how many.
function keep.terms(status)
  local known = keep.known[status]
  if known then return unpack(known) end
  local set = server('HMGET', key.queue, 'keep_' .. status, 'max_' .. status)
  keep.known[status] = { tonumber(set[1] or keep.ages[status]), tonumber(set[2] or 100000) }
  return unpack(keep.known[status])
end

function keep.label(name, id)
  return struct.pack('B', #name) .. name .. id
end

function keep.drop_logs(id)
  local kept = server('HGET', key.logs, ':' .. id)
  if not kept then return end
  local first, last = string.match(kept, '^(%d+) (%d+)$')
  for n = tonumber(first), tonumber(last) do server('HDEL', key.logs, n .. ':' .. id) end
  server('HDEL', key.logs, ':' .. id)
end

-- All that is left of ids that stand nowhere any more.
function keep.forget(ids)
  if #ids == 0 then return end
  if server('EXISTS', key.names) == 1 then
    local raws = server('HMGET', key.jobs, unpack(ids))
    for k, raw in ipairs(raws) do
      if raw and bit.band(string.byte(raw), 1) > 0 then
        local name = record.read(ids[k], raw).options.name
        if name then server('ZREM', key.names, keep.label(name, ids[k])) end
      end
    end
  end
  server('HDEL', key.jobs, unpack(ids))
  if server('EXISTS', key.states, key.progress) > 0 then
    server('HDEL', key.states, unpack(ids))
    server('HDEL', key.progress, unpack(ids))
  end
  if server('EXISTS', key.logs) == 1 then
    for _, id in ipairs(ids) do keep.drop_logs(id) end
  end
end

-- What the next life of an id remembers of this one.
function keep.remember(job, known, status, finished, failure)
  local fine, parsed = pcall(cjson.decode, failure or '')
  return {
    life = job.life, status = status, created = job.created, due = job.due, began = known.began, finished = finished, merged = known.merged,
    error = fine and type(parsed) == 'table' and parsed.type or nil,
  }
end

-- The same of a job that has ended before.
function keep.summary(job, status)
  local ending = server('HGET', keep.hashes[status], job.id)
  local finished, size = struct.unpack('>I6B', ending)
  local lease, known = string.sub(ending, 8, 7 + size), server('HGET', key.states, job.id)
  known = known and cmsgpack.unpack(known) or {}
  known.began = known.began or tonumber(string.match(lease, ' (%d+)$'))
  return keep.remember(job, known, status, finished, status == 'failed' and string.sub(ending, 8 + size))
end

-- The chunk of the queue's own retention for ids that ended just now.
function keep.note(status, ids)
  server('RPUSH', keep.chunks[status], struct.pack('>I6', now) .. cmsgpack.pack(ids))
end

-- A job has ended: keep it as its own `keep` or the queue says. `ending` is what its status' hash holds of it.
function keep.finish(job, status, ending)
  local own = job.options.keep
  local age = own or keep.terms(status)
  if age == 0 then
    keep.forget({ job.id })
    return
  end
  server('HSET', keep.hashes[status], job.id, ending)
  if not own then
    keep.note(status, { job.id })
  else
    server('HINCRBY', key.queue, 'exempt_' .. status, 1)
    if own ~= true then server('ZADD', key.timers, now + own, 'k' .. job.id) end
  end
end

-- The same of many that have no `keep` of their own. `endings`: id and what is held of it, in turn.
function keep.finish_all(status, ids, endings)
  if keep.terms(status) == 0 then
    keep.forget(ids)
    return
  end
  server('HSET', keep.hashes[status], unpack(endings))
  keep.note(status, ids)
  keep.prune(status, 4)
end

-- A finished job lives again or goes: it no longer counts among the finished.
function keep.release(job, status)
  server('HDEL', keep.hashes[status], job.id)
  if job.options.keep then
    server('HINCRBY', key.queue, 'exempt_' .. status, -1)
    server('ZREM', key.timers, 'k' .. job.id)
  end
end

-- Drops the oldest chunks of a status: too old, or too many. At most so many rounds; true when there is more to do.
function keep.prune(status, rounds)
  local chunk = server('LINDEX', keep.chunks[status], 0)
  if not chunk then return false end
  local age, most = keep.terms(status)
  for _ = 1, rounds do
    local excess = server('HLEN', keep.hashes[status]) - most
    if excess > 0 then excess = excess - tonumber(server('HGET', key.queue, 'exempt_' .. status) or 0) end
    local old = struct.unpack('>I6', chunk) + age <= now
    if not old and excess <= 0 then return false end
    local ids, gone, rest = cmsgpack.unpack(string.sub(chunk, 7)), {}, {}
    local endings = server('HMGET', keep.hashes[status], unpack(ids))
    for k, id in ipairs(ids) do
      -- It may have lived again since: then this chunk no longer speaks of it.
      if endings[k] and string.sub(endings[k], 1, 6) == string.sub(chunk, 1, 6) then
        if old or #gone < excess then gone[#gone + 1] = id else rest[#rest + 1] = id end
      end
    end
    if #gone > 0 then
      server('HDEL', keep.hashes[status], unpack(gone))
      keep.forget(gone)
    end
    server('LPOP', keep.chunks[status])
    if #rest > 0 then
      server('LPUSH', keep.chunks[status], string.sub(chunk, 1, 6) .. cmsgpack.pack(rest))
      return false
    end
    chunk = server('LINDEX', keep.chunks[status], 0)
    if not chunk then return false end
  end
  return true
end

-- The same of every status.
function keep.prune_all(rounds)
  local more = false
  for status in pairs(keep.hashes) do more = keep.prune(status, rounds) or more end
  return more
end
