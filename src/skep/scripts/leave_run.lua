-- leave_run: active -> succeeded | failed | cancelled | waiting | scheduled | retrying | held
--
-- The ends of many runs, each accepted once, for the run that holds the lease.
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, worker, lease, word, n, id, text, after, ...   n ends alike in lease and word; `succeeded` goes without `after`
--       word: as in `run.leave`, `timeout:` before it; after: ms to wait, or the next due time of a cron series
-- gives a letter for each: y taken as said, - refused: the run was over
--@use calls record emit keep
--@later run
local kept = calls.before(now, call)
if kept then return kept end
server('HDEL', key.queue, '')

local ids, texts, groups, i = {}, {}, {}, 4
while i <= #ARGV do
  local word, n = ARGV[i + 1], tonumber(ARGV[i + 2])
  local width = word == 'succeeded' and 2 or 3
  groups[#groups + 1] = { ARGV[i], word, #ids + 1, #ids + n, i + 3 }
  for at = i + 3, i + 2 + n * width, width do
    ids[#ids + 1], texts[#texts + 1] = ARGV[at], ARGV[at + 1]
  end
  i = i + 3 + n * width
end
local alive = server('ZSCORE', key.leases, ARGV[3])
local owned, raws = server('HMGET', key.active, unpack(ids)), server('HMGET', key.jobs, unpack(ids))

-- Those of which the side hashes know something; the others end all alike.
local rare = {}
if server('EXISTS', key.states, key.blocked, key.stops, key.awaited) > 0 then
  for _, hash in ipairs({ key.states, key.blocked, key.stops, key.awaited }) do
    for k, found in ipairs(server('HMGET', hash, unpack(ids))) do rare[k] = rare[k] or found end
  end
end

local said, done, bodies, endings, slow, seen = {}, {}, {}, {}, {}, {}
local byte, sub, head, band = string.byte, string.sub, record.head, bit.band
for _, group in ipairs(groups) do
  local lease, plain = group[1], group[2] == 'succeeded'
  local told, kept_as = emit.packed_lease(lease), struct.pack('>I6B', now, #lease) .. lease
  for k = group[3], group[4] do
    local id, raw = ids[k], raws[k]
    local mine = alive and owned[k] == lease and not seen[id]
    said[k] = mine and 'y' or '-'
    if mine then
      seen[id] = true
      if plain and not rare[k] and (band(byte(raw), 1) == 0 or record.is_light(raw)) then
        local at, text = #done + 1, texts[k]
        done[at], bodies[at] = id, 'y' .. sub(raw, 1, head(raw)) .. emit.result(told, text)
        endings[2 * at - 1], endings[2 * at] = id, kept_as .. text
      else
        slow[#slow + 1] = { k, group }
      end
    end
  end
end
if #done > 0 then
  emit.many('y', done, bodies)
  server('HDEL', key.active, unpack(done))
  keep.finish_all('succeeded', done, endings)
end
local run = #slow > 0 and later_run()
for _, each in ipairs(slow) do
  local k, group = each[1], each[2]
  local word, lease = group[2], group[1]
  local after = word ~= 'succeeded' and tonumber(ARGV[group[5] + 3 * (k - group[3]) + 2]) or nil
  server('HDEL', key.active, ids[k])
  run.leave(ids[k], raws[k], lease, word, texts[k], after)
end
emit.flush(ARGV[3])
return calls.answered(now, call, '=' .. table.concat(said))
