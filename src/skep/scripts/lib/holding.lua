-- holding: what registered readers keep in the stream, and the counts that they find there
--@use emit place
local holding = { lapse = 604800000, every = 10000, names = {
  'waiting', 'scheduled', 'retrying', 'held', 'active', 'blocked', 'succeeded', 'failed', 'cancelled',
} }

-- Trimming waits for the slowest reader that has not lapsed. Gives the number that it has done with.
function holding.note(lapse)
  local hold
  local all = server('HGETALL', key.readers)
  for i = 1, #all, 2 do
    local committed, since = string.match(all[i + 1], '^(%d+) (%d+)')
    if tonumber(since) + lapse < now then
      server('HDEL', key.readers, all[i])
    elseif not hold or tonumber(committed) < hold then
      hold = tonumber(committed)
    end
  end
  -- The last event that is done with stays, so that the reader sees whether it is still the same.
  if hold then server('HSET', key.queue, 'hold', math.max(hold - 1, 0)) else server('HDEL', key.queue, 'hold') end
  return hold
end

-- All counts at this point of the stream: between two of these the books must balance.
function holding.counted()
  local details = {}
  for k, count in ipairs(place.counts()) do details[holding.names[k]] = count end
  server('HSET', key.queue, 'counted', emit.event('1', '', '', { counts = details }))
end

-- In passing: counts now and then, and readers that are gone.
function holding.pass()
  local known = server('HMGET', key.queue, 'hold', 'counted', 'looked_at')
  if not known[1] then return end
  if emit.next() - tonumber(known[2] or 0) > holding.every then holding.counted() end
  if now - tonumber(known[3] or 0) > 60000 then
    server('HSET', key.queue, 'looked_at', now)
    holding.note(holding.lapse)
  end
end
