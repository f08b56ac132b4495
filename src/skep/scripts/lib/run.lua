-- run: the end of one run, whoever tells it: its worker, or who finds that worker dead
--@use record emit place counts life
local run = {}

local codes = { returned = 'g', stalled = 't', retried = 'r', postponed = 'r' }

-- Back to what waits: retrying, stalled or returned. A twin is merged into it.
local function go_on(job, known, word, text, lease, after)
  local was = job.due
  job.due = now + after
  server('HSET', key.jobs, job.id, record.write(job))
  counts.write(job.id, known)
  local status = place.wait(job, known.failures, word == 'returned')
  local details = { lease = lease, run = known.runs, began = known.began, status = status, due = job.due, was = was }
  if run.kinds[word].error then details.error = text end
  for _, name in ipairs({ 'attempts', 'failures', 'stalls', 'timeouts' }) do details[name] = known[name] end
  emit.event(codes[word], job.id, record.write_head(job), details)
  local twin, how = life.twin(job.id)
  if twin then life.merge(twin, how, job, status, known) end
end

local function most_stalls(job)
  return job.options.max_stalls or tonumber(server('HGET', key.queue, 'max_stalls') or 3)
end

-- Whether this end of a run ends a life that nobody asked to stop, whatever else is known.
function run.is_last(job, word)
  if word ~= 'stalled' or server('HEXISTS', key.stops, job.id) == 1 then return false end
  return (counts.read(job.id).stalls or 0) >= most_stalls(job)
end

-- `word`: succeeded, ended (succeeded, in a cron series), retried, postponed, failed, cancelled, stalled or returned, and `timeout:`
-- before it where its time was up, and `keep:MS:` or `keep:true:` before all where its task says how long it is kept. `text`: result, error or reason. `after`: ms to wait, or the next due time of a cron series.
-- The caller has taken the id out of `active`.
function run.leave(id, raw, lease, word, text, after)
  local job, known = record.read(id, raw), counts.read(id)
  local own, bare = string.match(word, '^keep:(%w+):(.*)$')
  if own then
    word = bare
    if job.options.keep == nil then
      job.options.keep = own == 'true' or tonumber(own)
      server('HSET', key.jobs, id, record.write(job))
    end
  end
  local stop = server('HGET', key.stops, id)
  if stop then
    server('HDEL', key.stops, id)
    job.options.again = nil
    if stop ~= '' then job.options.keep = tonumber(stop) end
    server('HSET', key.jobs, id, record.write(job))
  end
  known.runs = (known.runs or 0) + 1
  known.began = known.began or tonumber(string.match(lease, ' (%d+)$'))
  if job.options.expires then server('ZREM', key.timers, 'e' .. id) end
  if string.sub(word, 1, 8) == 'timeout:' then
    counts.add(known, 'timeouts')
    word = string.sub(word, 9)
  end
  local is = run.kinds[word]
  for _, name in ipairs(is.counts) do counts.add(known, name) end
  if is.error then known.error = text end
  local status = is.status or word == 'stalled' and known.stalls > most_stalls(job) and 'failed'
  if status ~= 'succeeded' and (stop or word == 'cancelled') then status = 'cancelled' end
  if not status then
    go_on(job, known, word, text, lease, is.waits and after or 0)
    return
  end
  local how = { status = status, text = text, lease = lease, next_due = after }
  if status == 'cancelled' then how.reason = word == 'cancelled' and text ~= '' and text or 'on request' end
  if status == 'succeeded' then known.error = nil end
  life.over(job, known, how)
end

-- What each word counts, whether it is an error, whether it ends the life, whether it may have to wait.
run.kinds = {
  succeeded = { counts = { 'attempts' }, status = 'succeeded' },
  ended = { counts = { 'attempts' }, status = 'succeeded' },
  retried = { counts = { 'attempts', 'failures' }, error = true, waits = true },
  postponed = { counts = {}, waits = true },
  failed = { counts = { 'attempts', 'failures' }, error = true, status = 'failed' },
  cancelled = { counts = {}, status = 'cancelled' },
  stalled = { counts = { 'attempts', 'stalls' }, error = true },
  returned = { counts = {} },
}
