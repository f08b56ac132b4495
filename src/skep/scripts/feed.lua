-- feed: entries of the stream behind a number, in order
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, after, count, bytes   bytes: about so many at most, at least one entry
-- gives entries: id and fields
local found, size, taken = server('XRANGE', key.events, (tonumber(ARGV[3]) + 1) .. '-0', '+', 'COUNT', ARGV[4]), 0, {}
for _, entry in ipairs(found) do
  for _, field in ipairs(entry[2]) do size = size + #field end
  if #taken > 0 and size > tonumber(ARGV[5]) then break end
  taken[#taken + 1] = entry
end
return taken
