-- renew: a worker lives on, and both sides agree on what it runs
--
-- What it holds here up to its last answered claim and does not name was lost on the way: it is returned.
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, worker, lease_ms, answered, info, id, lease, ...   answered: the number of its last answered claim
-- gives now, ids that are no longer its own, ids that are asked to stop, due times wanted, whether to claim; nothing: fenced
--@use record emit place counts run tick waker due
local worker, lease_ms, answered = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
server('HDEL', key.queue, '')
tick.slice(lease_ms, {}, 50)
if not server('ZSCORE', key.leases, worker) then
  emit.flush(worker)
  return false
end
server('ZADD', key.leases, now + lease_ms, worker)
server('HSET', key.queue, 'renewed', now)
if ARGV[6] ~= '' then server('HSET', key.workers, worker, ARGV[6]) end

local named, lost, stop = {}, {}, {}
for i = 7, #ARGV, 2 do
  named[ARGV[i]] = ARGV[i + 1]
  if server('HGET', key.active, ARGV[i]) ~= ARGV[i + 1] then
    lost[#lost + 1] = ARGV[i]
  elseif server('HEXISTS', key.stops, ARGV[i]) == 1 then
    stop[#stop + 1] = ARGV[i]
  end
end

-- Only the last claim can be unknown to the worker, unless the server forgot: then a longer look is due.
local function unheard(id, lease)
  local by, number = string.match(lease, '^(%S+) (%d+)')
  if by == worker and tonumber(number) <= answered and named[id] ~= lease then
    server('HDEL', key.active, id)
    run.leave(id, server('HGET', key.jobs, id), lease, 'returned', '')
  end
end
local held_here = server('HLEN', key.active) - 1
if held_here > 0 and held_here <= 2000 then
  local all = server('HGETALL', key.active)
  for i = 1, #all, 2 do
    if all[i] ~= '' then unheard(all[i], all[i + 1]) end
  end
elseif held_here > 0 then
  local found = server('HSCAN', key.active, server('HGET', key.queue, 'looked') or '0', 'COUNT', 2000)
  for i = 1, #found[2], 2 do
    if found[2][i] ~= '' then unheard(found[2][i], found[2][i + 1]) end
  end
  server('HSET', key.queue, 'looked', found[1])
end

-- A marker that died with the worker that took it, or a timer with its owner.
local at = tonumber(server('HGET', key.queue, 'timer_at'))
if place.any() or waker.is_due(due.head(), at) then waker.now() end
emit.flush(worker)
return { now, lost, stop, tick.wanted, server('EXISTS', key.aside) }
