-- expect: somebody waits for these lives to end
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, ms, progress, id, life, ...   ms: for how long, unless it is said again; progress: '1' to hear of that too
-- gives the last entry of `answers` so far; then for each life its number (that of another one, if it was merged into that), and its
-- status and ending, if it is over already, or `progress` and what its run has reported, if that is wanted
--@use place keep record life answer
local last = server('XREVRANGE', key.answers, '+', '-', 'COUNT', 1)[1]
local found = { last and last[1] or '0-0' }

local function stands(id, want)
  local raw = server('HGET', key.jobs, id)
  if not raw then return { want, 'removed', '' } end
  local job, known = record.read(id, raw), counts.read(id)
  if job.life == want or life.was_merged(known, want) then
    local status = place.status(id)
    if status == 'active' and ARGV[4] == '1' then
      local reported = server('HGET', key.progress, id)
      if reported then return { job.life, 'progress', reported } end
    end
    if not keep.hashes[status] then return { job.life } end
    local ending = server('HGET', keep.hashes[status], id)
    return { job.life, status, string.sub(ending, 8 + string.byte(ending, 7)) }
  end
  local twin = life.twin(id)
  if twin and twin.life == want then return { want } end
  local before = known.previous
  if before and (before.life == want or life.was_merged(before, want)) then return { before.life, before.status, '' } end
  return { want, 'removed', '' }
end

answer.sweep()
for i = 5, #ARGV, 2 do
  found[#found + 1] = stands(ARGV[i], tonumber(ARGV[i + 1]))
  answer.expect(ARGV[i], tonumber(ARGV[3]), ARGV[4] == '1')
end
return found
