-- fresh: many new jobs at once, alike in all but id and data, whose ids nobody has used before
--@use emit waker place
local fresh = {}

-- `list`: id, data, id, data, ... from `first` on; its data become records. `when`: '' for now, '+ms' from now, or an instant.
-- `flags`, `tail`: the head of their records after the times. `largest`: the size of the largest data.
function fresh.add(when, priority, flags, tail, largest, list, first)
  local due = now
  if string.sub(when, 1, 1) == '+' then due = now + tonumber(when) elseif when ~= '' then due = tonumber(when) end
  local differs = due ~= now
  local head = string.char(64 + flags + (differs and 2 or 0)) .. struct.pack('>I6', now)
  head = head .. (differs and struct.pack('>I6', due) or '') .. tail
  local ids = {}
  for i = first, #list, 2 do
    ids[#ids + 1] = list[i]
    list[i + 1] = head .. list[i + 1]
  end
  server('HSET', key.jobs, unpack(list, first))
  if due > now then
    local set = {}
    for _, id in ipairs(ids) do set[#set + 1], set[#set + 2] = due, id end
    server('ZADD', key.scheduled, unpack(set))
    waker.at(due)
  else
    server('RPUSH', place.lists[priority], unpack(ids))
    waker.now()
  end
  emit.births(ids, list, first, largest)
end
