-- workers: who holds a lease on this queue
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call
-- gives now, and names, each with the end of its lease and what it told of itself
local found = { now }
local leases, told = server('ZRANGE', key.leases, 0, -1, 'WITHSCORES'), {}
local all = server('HGETALL', key.workers)
for i = 1, #all, 2 do told[all[i]] = all[i + 1] end
for i = 1, #leases, 2 do
  found[#found + 1] = { leases[i], tonumber(leases[i + 1]), told[leases[i]] or '' }
end
return found
