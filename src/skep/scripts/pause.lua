-- pause: no worker takes anything of this queue, or does again
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, wanted   wanted: 1 to pause, 0 to resume
-- gives '1' if that is a change
--@use calls emit waker
local kept = calls.before(now, call)
if kept then return kept end
local paused = server('HEXISTS', key.queue, 'paused') == 1
if paused == (ARGV[3] == '1') then return calls.answered(now, call, '=0') end
if paused then
  server('HDEL', key.queue, 'paused')
  -- Who was asked for jobs set aside while it was paused, took nothing.
  waker.ask()
  emit.event('w', '', '')
else
  server('HSET', key.queue, 'paused', now)
  emit.event('z', '', '')
end
emit.flush(calls.by(call))
return calls.answered(now, call, '=1')
