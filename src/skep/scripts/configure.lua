-- configure: writes settings of the queue
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, name, value, ...   value: '' takes a setting back
-- gives '1' if anything changed
--@use calls emit
local kept = calls.before(now, call)
if kept then return kept end
-- Handlers of other workers stay registered: they go with `forget_failure_handlers()` only.
local function joined(told)
  local before = server('HGET', key.queue, 'on_failure')
  local all, news = before and cmsgpack.unpack(before) or {}, false
  for task in pairs(cmsgpack.unpack(told)) do
    news = news or not all[task]
    all[task] = true
  end
  return news and cmsgpack.pack(all) or before or told
end

local changed = {}
for i = 3, #ARGV, 2 do
  local name, value = ARGV[i], ARGV[i + 1]
  if name == 'on_failure' and value ~= '' then value = joined(value) end
  if (server('HGET', key.queue, name) or '') ~= value then
    changed[name] = name == 'on_failure' and value ~= '' and cmsgpack.unpack(value) or value
    if value == '' then server('HDEL', key.queue, name) else server('HSET', key.queue, name, value) end
  end
end
if next(changed) == nil then return calls.answered(now, call, '=0') end
emit.event('k', '', '', { settings = changed })
emit.flush(calls.by(call))
return calls.answered(now, call, '=1')
