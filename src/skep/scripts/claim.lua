-- claim: waiting | scheduled | retrying | held -> active | held | cancelled
--
-- The next jobs for a worker's free slots. The same number again gets the same runs, as far as they are still its own.
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, worker, number, n, lease_ms, knows   knows: a packed list of tasks
-- gives now, when to come back (0: when woken), ids, records, counts (or nothing), the lease, due times wanted; nothing: fenced
--@use record emit place waker due take
--@later tick aside
local worker, number, n = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
-- A first write that frees memory lets the rest pass on a full server.
server('HDEL', key.queue, '')
local overdue, wanted = false, {}
if due.slice() then
  local tick = later_tick()
  overdue, wanted = tick.slice(tonumber(ARGV[6]), {}, 50), tick.wanted
else
  due.promote(math.max(150, n))
end
if not server('ZSCORE', key.leases, worker) then
  emit.flush(worker)
  return false
end

local last = server('HGET', key.claims, worker)
if last and tonumber(string.sub(last, 1, 16)) >= number then
  local kept = cmsgpack.unpack(string.sub(last, 17))
  local ids, raws = {}, {}
  for _, id in ipairs(kept.ids) do
    if server('HGET', key.active, id) == kept.lease then ids[#ids + 1], raws[#raws + 1] = id, server('HGET', key.jobs, id) end
  end
  -- The time that it was told may have been lost with the first answer, and the server counts on it.
  local told = server('HMGET', key.queue, 'timer_by', 'timer_at')
  emit.flush(worker)
  return { now, told[1] == worker and tonumber(told[2]) or 0, ids, raws, #ids > 0 and server('HMGET', key.states, unpack(ids)) or false, kept.lease, {} }
end

local lease = worker .. ' ' .. number .. ' ' .. now
local duty = server('HMGET', key.queue, 'paused', 'timer_by', 'timer_at', 'asking')
local mine, at, asking = duty[2] == worker, tonumber(duty[3]), duty[4]
local ids, raws, packed, more = {}, {}, false, overdue
if not duty[1] and not overdue then
  local list, knows = cmsgpack.unpack(ARGV[7]), {}
  for _, task in ipairs(list) do knows[task] = true end
  if server('EXISTS', key.aside) == 1 then later_aside().take_back(list, n) end
  local unknown
  ids, raws, unknown, more = take.next(n, knows)
  if #unknown > 0 then
    later_aside().set(unknown)
    asking = true
  end
  if #ids > 0 then packed = take.lease(ids, raws, lease) end
end
server('HSET', key.claims, worker, string.format('%016d', number) .. cmsgpack.pack({ ids = ids, lease = lease }))

if asking then asking = not duty[1] and waker.ask_next() end

-- Who owns the timer duty comes back by itself when the next job is due: exactly who was told a time here.
local head = duty[1] and 0 or due.head()
if duty[1] or #ids >= n or more then
  if mine then server('HDEL', key.queue, 'timer_by', 'timer_at') at = nil end
  if not duty[1] and (more or place.any() or waker.is_due(head, at)) then waker.now() end
  head = 0
elseif head > 0 then
  if mine or waker.is_due(head, at) then
    server('HSET', key.queue, 'timer_by', worker, 'timer_at', head)
  else
    head = 0
  end
  if not asking then server('DEL', key.wake) end
else
  if at then server('HDEL', key.queue, 'timer_by', 'timer_at') end
  if not asking then server('DEL', key.wake) end
end
emit.flush(worker)
return { now, head, ids, raws, packed, lease, wanted }
