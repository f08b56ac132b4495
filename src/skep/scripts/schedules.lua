-- schedules: the ids of series that are declared in code, a slice of all jobs at a time
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, cursor
-- gives the next cursor ('0': the end), and ids
local found, ids = server('HSCAN', key.jobs, ARGV[3], 'MATCH', 'cron:*', 'COUNT', 5000), {}
for i = 1, #found[2], 2 do ids[#ids + 1] = found[2][i] end
return { found[1], ids }
