-- emit: what every change leaves behind; one entry of the stream for all events of a call, numbered without a gap
--@use record trim
local emit = { count = 0, list = {}, first = 1 }

local function settings()
  if emit.seq then return end
  local kept = server(
    'HMGET', key.queue, 'seq', 'max_events', 'max_event_data', 'event_data', 'history', 'entry', 'hold',
    'written', 'weighed', 'cut', 'cut_bytes', 'max_event_bytes'
  )
  emit.seq = tonumber(kept[1] or 0)
  emit.most = tonumber(kept[2] or 100000)
  emit.largest = kept[4] == '0' and -1 or tonumber(kept[3] or 16384)
  emit.history = kept[5] or 'all'
  emit.entry = tonumber(kept[6])
  emit.hold = tonumber(kept[7])
  if emit.history ~= 'all' then emit.numbers = {} end
  emit.written, emit.weighed = tonumber(kept[8] or 0), tonumber(kept[9] or 0)
  emit.cut, emit.cut_bytes, emit.most_bytes = tonumber(kept[10] or 0), tonumber(kept[11] or 0), tonumber(kept[12])
end

-- The number that the next event will have.
function emit.next()
  settings()
  return emit.seq + emit.count + 1
end

-- `head`: all of the job's record but its data. `details`: a table, or one packed already.
function emit.event(code, id, head, details)
  local seq, list = emit.next(), emit.list
  emit.count = emit.count + 1
  if emit.history == 'all' or emit.history == 'endings' and string.find('yrftgc', code, 1, true) then
    if type(details) == 'table' then details = next(details) and cmsgpack.pack(details) or '' end
    list[#list + 1], list[#list + 2] = id, code .. head .. (details or '')
    if emit.numbers then emit.numbers[#emit.numbers + 1] = seq end
  end
  return seq
end

-- JSON that goes with an event, unless it is too large or the queue keeps all of it out.
function emit.kept(details, name, text)
  settings()
  if text and #text <= emit.largest then details[name] = text else details.left_out = true end
  return details
end

-- The same of many jobs at once: `bodies` has code, head and packed details of each.
function emit.many(code, ids, bodies)
  if #ids == 0 then return end
  settings()
  if emit.history ~= 'all' then
    for k, id in ipairs(ids) do emit.event(code, id, string.sub(bodies[k], 2)) end
    return
  end
  local list, at = emit.list, #emit.list
  for k = 1, #ids do
    list[at + 1], list[at + 2] = ids[k], bodies[k]
    at = at + 2
  end
  emit.count = emit.count + #ids
end

-- The two halves of what is told of a run that simply succeeded: the first is the same for all of one claim.
function emit.packed_lease(lease)
  return '\130\165lease' .. cmsgpack.pack(lease)
end

function emit.result(packed_lease, text)
  settings()
  local size = #text
  if size > emit.largest then return packed_lease .. '\168left_out\195' end
  if size < 32 then return packed_lease .. '\166result' .. string.char(160 + size) .. text end
  return packed_lease .. '\166result' .. cmsgpack.pack(text)
end

-- Birth of a job with all that is in its record.
function emit.birth(code, id, raw, details)
  settings()
  local head = record.head(raw)
  if code == 'a' and #raw - head <= emit.largest and not (details and next(details)) and emit.history == 'all' then
    emit.count = emit.count + 1
    emit.list[#emit.list + 1], emit.list[#emit.list + 2] = id, raw
    return emit.seq + emit.count
  end
  details = emit.kept(details or {}, 'data', string.sub(raw, head + 1))
  return emit.event(code, id, string.sub(raw, 1, head), details)
end

-- The same of many, whose ids and records stand in `pairs` from `first` on. `largest`: the size of the largest data.
function emit.births(ids, both, first, largest)
  settings()
  if largest <= emit.largest and emit.history == 'all' and #emit.list == 0 then
    emit.count, emit.list, emit.first = #ids, both, first
    return
  end
  for k, id in ipairs(ids) do emit.birth('a', id, both[first + 2 * k - 1]) end
end

-- What is left out keeps its number: the entry then says from which number on it stands, and which ones it holds.
local function numbering(last)
  if emit.numbers then
    server('HSET', key.queue, 'entry', #emit.list > 0 and last or emit.entry or emit.seq)
    return { 'from', (emit.entry or emit.seq) + 1, 'numbers', cmsgpack.pack(emit.numbers) }
  end
  if not emit.entry then return nil end
  local numbers = {}
  for seq = emit.seq + 1, last do numbers[#numbers + 1] = seq end
  server('HDEL', key.queue, 'entry')
  return { 'from', emit.entry + 1, 'numbers', cmsgpack.pack(numbers) }
end

function emit.flush(by)
  if emit.count == 0 then return end
  local size = 0
  for i = emit.first, #emit.list do size = size + #emit.list[i] end
  local gone = trim.by_size(emit, size)
  if gone then emit.event('j', '', '', gone) end
  local last = emit.seq + emit.count
  server('HSET', key.queue, 'seq', last, 'written', emit.written)
  local oldest, numbers = trim.oldest(emit, last), numbering(last)
  if #emit.list == 0 then return end
  if numbers then
    server('XADD', key.events, 'MINID', '~', oldest, last .. '-0', 'at', now, 'by', by, numbers[1], numbers[2], numbers[3], numbers[4], unpack(emit.list, emit.first))
  else
    server('XADD', key.events, 'MINID', '~', oldest, last .. '-0', 'at', now, 'by', by, unpack(emit.list, emit.first))
  end
  if gone then server('XTRIM', key.events, 'MINID', oldest) end
end
