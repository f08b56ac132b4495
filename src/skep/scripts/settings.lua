-- settings: what is kept of the queue itself: its settings, and whether it is paused
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call
-- gives names and values
return server('HGETALL', key.queue)
