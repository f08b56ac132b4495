-- reader: a registered reader has committed events, or goes; trimming waits for the slowest one
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, reader, seq, lapse_ms, how, at   seq: the number of the last event it has done with, '' to end its registration
--       how: `commits`, or `begins`, which never moves a registration that there is forwards
--       at: the time of that event, by which it is known again; '' where the reader notes it elsewhere
-- gives the number that trimming waits for, or nothing
--@use calls emit holding
local kept = calls.before(now, call)
if kept then return kept end

local reader, seq, lapse, begins = ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6] == 'begins'
local at, first = ARGV[7], server('EXISTS', key.readers) == 0
if seq == '' then
  server('HDEL', key.readers, reader)
else
  local before = begins and server('HGET', key.readers, reader)
  local there, there_at = string.match(before or '', '^(%d+) %d+ ?(%d*)$')
  if there and tonumber(there) <= tonumber(seq) then seq, at = there, there_at end
  server('HSET', key.readers, reader, seq .. ' ' .. now .. (at ~= '' and ' ' .. at or ''))
end
local hold = holding.note(lapse)
if first and hold then
  holding.counted()
  emit.flush(calls.by(call))
end
return calls.answered(now, call, '=' .. (hold or ''))
