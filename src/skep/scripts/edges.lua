-- edges: where the stream of events begins and ends, and which entries stand for some numbers
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, number, ...
-- gives the setting `history` ('': never set), the last event's number and time, the first number that the oldest entry stands for (all 0:
-- there are none), and for each number that of the last event of its entry and its time, or nothing
local history = server('HGET', key.queue, 'history') or ''
local last = server('XREVRANGE', key.events, '+', '-', 'COUNT', 1)[1]
if not last then return { history, 0, 0, 0 } end
local oldest = server('XRANGE', key.events, '-', '+', 'COUNT', 1)[1]

local function number(entry)
  return tonumber(string.match(entry[1], '^%d+'))
end

-- A job may be called `from`: then a body stands behind its id, which never begins with a digit.
local function first(entry)
  local fields = entry[2]
  if fields[5] == 'from' and string.find(fields[6], '^%d') then return tonumber(fields[6]) end
  return number(entry) - (#fields - 4) / 2 + 1
end

local found = { history, number(last), tonumber(last[2][2]), first(oldest) }
for i = 3, #ARGV do
  local entry = server('XRANGE', key.events, ARGV[i] .. '-0', '+', 'COUNT', 1)[1]
  found[#found + 1] = entry and first(entry) <= tonumber(ARGV[i]) and { number(entry), tonumber(entry[2][2]) } or false
end
return found
