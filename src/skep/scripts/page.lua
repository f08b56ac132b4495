-- page: a slice of the ids in one place, by a cursor that cannot skip what stays there
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, where, cursor, count   where: a status' hash or set, `jobs` for all, or `name:` and a label
-- gives the next cursor ('0': the end; after a label, the last member) and ids
--@use keep
local where, cursor, count = ARGV[3], ARGV[4], tonumber(ARGV[5])
local hashes = { jobs = key.jobs, held = key.held, active = key.active, blocked = key.blocked, succeeded = key.succeeded, failed = key.failed, cancelled = key.cancelled }
local sets = { scheduled = key.scheduled, retrying = key.retrying }
local ids = {}
if string.sub(where, 1, 5) == 'name:' then
  local label = string.sub(where, 6)
  local prefix = keep.label(label, '')
  local from = cursor == '0' and '[' .. prefix or '(' .. keep.label(label, string.sub(cursor, 2))
  local found = server('ZRANGE', key.names, from, '[' .. prefix .. '\255', 'BYLEX', 'LIMIT', 0, count)
  for _, member in ipairs(found) do ids[#ids + 1] = string.sub(member, #prefix + 1) end
  return { #found == count and '+' .. ids[#ids] or '0', ids }
end
local found = sets[where] and server('ZSCAN', sets[where], cursor, 'COUNT', count) or server('HSCAN', hashes[where], cursor, 'COUNT', count)
for i = 1, #found[2], 2 do
  if found[2][i] ~= '' then ids[#ids + 1] = found[2][i] end
end
return { found[1], ids }
