-- due: jobs whose time has come, and when the next one's comes
--@use record place
local due = {}

-- Due jobs wait in the order in which they fall due.
function due.promote(limit)
  local ripe = {}
  for _, set in ipairs({ key.scheduled, key.retrying }) do
    local found = server('ZRANGE', set, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
    for i = 1, #found, 2 do ripe[#ripe + 1] = { tonumber(found[i + 1]), #ripe, found[i], set } end
  end
  if #ripe == 0 then return end
  table.sort(ripe, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end)
  for _, job in ipairs(ripe) do
    local raw = server('HGET', key.jobs, job[3])
    server('ZREM', job[4], job[3])
    if raw then server('RPUSH', place.lists[record.priority(raw)], job[3]) end
  end
end

-- When the next job is due; 0: none is.
function due.head()
  local head = 0
  for _, set in ipairs({ key.scheduled, key.retrying }) do
    local first = server('ZRANGE', set, 0, 0, 'WITHSCORES')[2]
    if first and (head == 0 or tonumber(first) < head) then head = tonumber(first) end
  end
  return head
end

-- Whether time has brought more than due jobs: a whole slice is due ten times a second, or when a timer is.
function due.slice()
  local ticked = tonumber(server('HGET', key.queue, 'clock') or 0)
  local timer = server('ZRANGE', key.timers, 0, 0, 'WITHSCORES')[2]
  return now < ticked or now >= ticked + 100 or timer and tonumber(timer) <= now
end
