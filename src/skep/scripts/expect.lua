-- expect: somebody waits for these lives to end
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, ms, id, life, ...   ms: for how long, unless it is said again
-- gives the last entry of `answers` so far; then for each id its life's status and ending, if that is over already
--@use place keep record life
local last = server('XREVRANGE', key.answers, '+', '-', 'COUNT', 1)[1]
local found = { last and last[1] or '0-0' }

local function stands(id, want)
  local raw = server('HGET', key.jobs, id)
  if not raw then return { 'removed', '' } end
  local job = record.read(id, raw)
  if job.life == want then
    local status = place.status(id)
    if not keep.hashes[status] then return false end
    local ending = server('HGET', keep.hashes[status], id)
    return { status, string.sub(ending, 8 + string.byte(ending, 7)) }
  end
  local twin = life.twin(id)
  if twin and twin.life == want then return false end
  local known = server('HGET', key.states, id)
  local before = known and cmsgpack.unpack(known).previous
  if before and before.life == want then return { before.status, '' } end
  return { 'removed', '' }
end

for i = 4, #ARGV, 2 do
  found[#found + 1] = stands(ARGV[i], tonumber(ARGV[i + 1]))
  server('HSET', key.awaited, ARGV[i], now + tonumber(ARGV[3]))
end
return found
