-- upkeep: one slice of all that time brings
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, lease_ms, limit, key, due, ...   due times of cron series that an earlier slice asked for
-- gives how many events it made, due times wanted, whether to come again at once
--@use emit tick calls due
server('HDEL', key.queue, '')
local nexts = {}
for i = 5, #ARGV, 2 do nexts[ARGV[i]] = tonumber(ARGV[i + 1]) end
local overdue, more = tick.slice(tonumber(ARGV[3]), nexts, tonumber(ARGV[4]))
local made = emit.count
local head = due.head()
more = more or overdue or server('EXISTS', key.dead) == 1 or head > 0 and head <= now
emit.flush('upkeep')
calls.sweep(now)
return { made, tick.wanted, more and 1 or 0 }
