-- trim: how far back the stream of events goes: by number, as far as registered readers have read, and never over its bytes
--
-- `weights` holds, every quarter of a megabyte, the number of an event and the bytes written up to it.
local trim = { most = 33554432, most_held = 268435456, step = 262144 }

-- Makes room for so many bytes more. Where that takes events which the number alone would keep: the range that goes.
function trim.by_size(emit, size)
  emit.written = emit.written + size
  if emit.written - emit.weighed < trim.step then return nil end
  server('RPUSH', key.weights, (emit.seq + emit.count) .. ' ' .. emit.written)
  local limit = emit.most_bytes or emit.hold and trim.most_held or trim.most
  local first = trim.oldest(emit, emit.seq)
  while true do
    local seq, bytes = string.match(server('LINDEX', key.weights, 0) or '', '^(%d+) (%d+)$')
    if not seq or tonumber(seq) >= emit.seq then break end
    if emit.written - emit.cut_bytes <= limit and tonumber(seq) >= first then break end
    server('LPOP', key.weights)
    emit.cut_bytes, emit.cut = tonumber(bytes), tonumber(seq) + 1
  end
  server('HSET', key.queue, 'weighed', emit.written, 'cut', emit.cut, 'cut_bytes', emit.cut_bytes)
  if emit.cut <= first then return nil end
  return { first = first, last = emit.cut - 1 }
end

-- The number of the oldest event that stays.
function trim.oldest(emit, last)
  local oldest = last - emit.most + 1
  if emit.hold and emit.hold + 1 < oldest then oldest = emit.hold + 1 end
  return math.max(oldest, emit.cut, 0)
end
