-- lines: the log lines of a job
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, id, after, count
-- gives the number of the last of these lines, and lines: time, level, text
local id, after, count = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local known = server('HGET', key.logs, ':' .. id)
if not known then return { 0, {} } end
local first, last = string.match(known, '^(%d+) (%d+)$')
first, last = math.max(tonumber(first), after + 1), tonumber(last)
last = math.min(last, first + count - 1)
if last < first then return { 0, {} } end
local fields = {}
for n = first, last do fields[#fields + 1] = n .. ':' .. id end
return { last, server('HMGET', key.logs, unpack(fields)) }
