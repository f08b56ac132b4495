-- take: the next jobs of a queue, by priority and in order, for one worker
--@use record emit place counts waker
local take = { rounds = 20 }

-- Takes the entries of a list that still count, at most n of them. True when its rounds ran out before the list did.
local function pop(priority, n, ids, stale)
  local list = place.lists[priority]
  for _ = 1, take.rounds do
    local found = server('LPOP', list, n - #ids)
    if not found then return false end
    if stale <= 0 then
      for _, id in ipairs(found) do ids[#ids + 1] = id end
    else
      for _, id in ipairs(found) do
        local field = priority .. id
        local left = tonumber(server('HGET', key.skips, field))
        if left then
          if left == 1 then server('HDEL', key.skips, field) else server('HINCRBY', key.skips, field, -1) end
          stale = server('HINCRBY', key.queue, 'stale', -1)
        else
          ids[#ids + 1] = id
        end
      end
    end
    if #ids >= n then return false end
  end
  return true
end

-- At most n jobs whose task is in `knows`; the others come as a list of id and record. `more`: something is left unread.
function take.next(n, knows)
  local ids, raws, unknown, more = {}, {}, {}, false
  if not place.any() then return ids, raws, unknown, false end
  local stale = tonumber(server('HGET', key.queue, 'stale') or 0)
  for priority = 10, 60, 10 do
    while #ids < n and not more do
      local found = {}
      more = pop(priority, n - #ids, found, stale)
      if #found == 0 then break end
      local got = server('HMGET', key.jobs, unpack(found))
      for k, raw in ipairs(got) do
        if raw and record.known(raw) and knows[record.task(raw)] then
          ids[#ids + 1], raws[#raws + 1] = found[k], raw
        elseif raw then
          unknown[#unknown + 1] = { found[k], raw }
        end
      end
    end
    more = more or #unknown > 100
    if more or #ids >= n then break end
  end
  return ids, raws, unknown, more
end

-- They run now. Gives what their lives have been through, where any have.
function take.lease(ids, raws, lease)
  local fields, packed = {}, false
  for k, id in ipairs(ids) do fields[2 * k - 1], fields[2 * k] = id, lease end
  server('HSET', key.active, unpack(fields))
  if server('EXISTS', key.states) == 1 then packed = server('HMGET', key.states, unpack(ids)) end
  local first, bodies, head = cmsgpack.pack({ lease = lease }), {}, record.head
  for k = 1, #ids do
    local details = first
    local runs = packed and packed[k] and cmsgpack.unpack(packed[k]).runs
    if runs then details = cmsgpack.pack({ lease = lease, run = runs + 1 }) end
    bodies[k] = 's' .. string.sub(raws[k], 1, head(raws[k])) .. details
  end
  emit.many('s', ids, bodies)
  return packed
end
