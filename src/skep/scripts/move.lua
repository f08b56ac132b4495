-- move: one chunk of decided rows becomes jobs
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call
-- gives the write that it moved a chunk of, or nothing where none is left
--@use emit mover
local write = mover.step()
emit.flush('write')
return write
