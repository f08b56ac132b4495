-- counts: how many jobs stand where
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call
-- gives waiting, scheduled, retrying, held, active, blocked, succeeded, failed, cancelled
--@use place
return place.counts()
