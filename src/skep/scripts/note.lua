-- note: progress and log lines, from runs that hold their lease or about jobs from anywhere
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, id, lease, kind, text, level, most, ...   lease: '' from anywhere; kind: p or l; most: log lines kept
-- gives a letter for each: y noted, - refused: the run is over, or there is no such job
--@use calls emit record counts place answer
local kept = calls.before(now, call)
if kept then return kept end

local function line(id, most)
  local known = server('HGET', key.logs, ':' .. id)
  local first, last = string.match(known or '1 0', '^(%d+) (%d+)$')
  first, last = tonumber(first), last + 1
  while last - first >= most do
    server('HDEL', key.logs, first .. ':' .. id)
    first = first + 1
  end
  server('HSET', key.logs, ':' .. id, first .. ' ' .. last)
  return last .. ':' .. id
end

local said = {}
for i = 3, #ARGV, 6 do
  local id, lease, kind, text, level = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  local raw = server('HGET', key.jobs, id)
  local holds = server('HGET', key.active, id)
  local fine = raw and (lease == '' or holds == lease)
  said[#said + 1] = fine and 'y' or '-'
  if fine then
    local head = string.sub(raw, 1, record.head(raw))
    local details = { lease = holds or nil, value = text, level = kind == 'l' and level or nil }
    local runs = holds and counts.read(id).runs
    if runs then details.run = runs + 1 end
    if not holds then details.status = place.status(id) end
    if kind == 'p' then
      server('HSET', key.progress, id, text)
      answer.progress(id, record.read(id, raw).life, text)
    elseif tonumber(ARGV[i + 5]) > 0 then
      server('HSET', key.logs, line(id, tonumber(ARGV[i + 5])), now .. ' ' .. level .. ' ' .. text)
    end
    emit.event(kind, id, head, details)
  end
end
emit.flush(calls.by(call))
return calls.answered(now, call, '=' .. table.concat(said))
