-- counts: how many jobs stand where
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call
-- gives waiting, scheduled, retrying, held, active, blocked, succeeded, failed, cancelled
--@use place
return {
  place.count(), server('ZCARD', key.scheduled), server('ZCARD', key.retrying), server('HLEN', key.held),
  server('HLEN', key.active) - server('HEXISTS', key.active, ''), server('HLEN', key.blocked),
  server('HLEN', key.succeeded), server('HLEN', key.failed), server('HLEN', key.cancelled),
}
