-- written: what became of a write
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, write
-- gives its packed state, or nothing where it was never decided or is forgotten
return server('HGET', key.writes, ARGV[3])
