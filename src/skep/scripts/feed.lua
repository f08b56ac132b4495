-- feed: entries of the stream behind a number, in order
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, after, count, bytes   bytes: about so many at most, at least one entry
-- gives the number of the last entry there is, that of the oldest (0: there are none), and entries: id and fields
local first = server('XRANGE', key.events, '-', '+', 'COUNT', 1)[1]
local last = server('XREVRANGE', key.events, '+', '-', 'COUNT', 1)[1]
if not first then return { 0, 0, {} } end
local function number(id) return tonumber(string.match(id, '^%d+')) end
local found, size, taken = server('XRANGE', key.events, (tonumber(ARGV[3]) + 1) .. '-0', '+', 'COUNT', ARGV[4]), 0, {}
for _, entry in ipairs(found) do
  for _, field in ipairs(entry[2]) do size = size + #field end
  if #taken > 0 and size > tonumber(ARGV[5]) then break end
  taken[#taken + 1] = entry
end
return { number(last[1]), number(first[1]), taken }
