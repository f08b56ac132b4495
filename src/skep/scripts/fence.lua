-- fence: settles what became of a given-up call
--
-- It is the lane's next call: a copy of the given-up one that still comes is refused from now on.
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, given_up   given_up: the number of that call
-- gives the answer that was kept for it; nothing: it never takes effect
--@use calls
local before = calls.before(now, call)
if before then return before end

local given_up = ARGV[3]
return calls.answered(now, call, '=' .. (calls.kept(given_up) or ''))
