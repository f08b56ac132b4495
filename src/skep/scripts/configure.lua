-- configure: writes settings of the queue
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, name, value, ...   value: '' takes a setting back
-- gives '1' if anything changed
--@use calls emit waker
local kept = calls.before(now, call)
if kept then return kept end
local changed = {}
for i = 3, #ARGV, 2 do
  local name, value = ARGV[i], ARGV[i + 1]
  if (server('HGET', key.queue, name) or '') ~= value then
    changed[name] = name == 'on_failure' and value ~= '' and cmsgpack.unpack(value) or value
    if value == '' then server('HDEL', key.queue, name) else server('HSET', key.queue, name, value) end
  end
end
if next(changed) == nil then return calls.answered(now, call, '=0') end
emit.event('k', '', '', { settings = changed })
emit.flush(calls.by(call))
return calls.answered(now, call, '=1')
