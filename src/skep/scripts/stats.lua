-- stats: how much there is to do, and since when it has waited
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call
-- gives now, how many wait, how many run, how many workers hold a lease, and when the job was due that has waited longest (nothing: none waits)
--@use record place
local oldest

-- The first of a list that still counts: others are passed over, so many of an id as `skips` says.
local function first(priority, list)
  local skipped, at = {}, 0
  while true do
    local ids = server('LRANGE', list, at, at + 99)
    if #ids == 0 then return nil end
    for _, id in ipairs(ids) do
      skipped[id] = skipped[id] or tonumber(server('HGET', key.skips, priority .. id) or 0)
      if skipped[id] == 0 then return id end
      skipped[id] = skipped[id] - 1
    end
    at = at + 100
  end
end

for priority, list in pairs(place.lists) do
  local id = first(priority, list)
  local raw = id and server('HGET', key.jobs, id)
  if raw and record.known(raw) then
    local due = record.read(id, raw).due
    if not oldest or due < oldest then oldest = due end
  end
end
local running = server('HLEN', key.active) - server('HEXISTS', key.active, '')
return { now, place.count(), running, server('ZCOUNT', key.leases, '(' .. now, '+inf'), oldest or false }
