-- readers: who is registered to read events, and how far each has come
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call
-- gives names, each with the number of the last event it has done with, when it said so, and that event's time if it told that
return server('HGETALL', key.readers)
