-- reader: a registered reader has committed events, or goes; trimming waits for the slowest one
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, reader, seq, lapse_ms   seq: the number of the last event it has done with, '' to end its registration
-- gives the number that trimming waits for, or nothing
--@use calls emit
local kept = calls.before(now, call)
if kept then return kept end

local reader, seq, lapse = ARGV[3], ARGV[4], tonumber(ARGV[5])
if seq == '' then
  server('HDEL', key.readers, reader)
else
  server('HSET', key.readers, reader, seq .. ' ' .. now)
end
local hold
local all = server('HGETALL', key.readers)
for i = 1, #all, 2 do
  local committed, at = string.match(all[i + 1], '^(%d+) (%d+)$')
  if tonumber(at) + lapse < now then
    server('HDEL', key.readers, all[i])
  elseif not hold or tonumber(committed) < hold then
    hold = tonumber(committed)
  end
end
if hold then server('HSET', key.queue, 'hold', hold) else server('HDEL', key.queue, 'hold') end
return calls.answered(now, call, '=' .. (hold or ''))
