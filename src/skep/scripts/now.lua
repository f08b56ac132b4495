-- now: the time by the server's clock
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call
-- gives milliseconds
return now
