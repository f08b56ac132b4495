-- join: a worker takes its first lease, and says who it is
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, worker, lease, info   info: a packed map, `lease` in it
-- gives the server's time
--@use emit tick
local worker, lease, info = ARGV[3], tonumber(ARGV[4]), ARGV[5]
-- First of all: this lease would hide a silence, or a backward step of the clock, from who comes by next.
server('HDEL', key.queue, '')
tick.slice(lease, {}, 50)
-- A hash of 65 bytes in one field is a table from the start: a list of 400 leases costs eight times as much.
if server('HEXISTS', key.active, '') == 0 then server('HSET', key.active, '', string.rep('-', 65)) end
local known = server('ZSCORE', key.leases, worker)
server('ZADD', key.leases, now + lease, worker)
server('HSET', key.workers, worker, info)
server('HSET', key.queue, 'renewed', now, 'served', 1)
if not known then emit.event('2', '', '', { worker = worker }) end
emit.flush(worker)
return now
