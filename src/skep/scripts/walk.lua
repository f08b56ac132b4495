-- walk: jobs as they stand, column by column: a slice of all by a cursor that cannot skip what stays there, or some ids
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, cursor, count, whole, id, ...   whole: '1' with data, results and errors; ids: these in the place of a slice
-- gives the next cursor ('0': the end), ids, records, letters (of their status), what goes with each (lease, reason or ending),
-- and, where any has them, counts and second jobs
--@use record
local ids, raws, cursor = {}, {}, '0'
if #ARGV > 5 then
  local given = { unpack(ARGV, 6) }
  for k, raw in ipairs(server('HMGET', key.jobs, unpack(given))) do
    if raw then ids[#ids + 1], raws[#raws + 1] = given[k], raw end
  end
else
  local found = server('HSCAN', key.jobs, ARGV[3], 'COUNT', ARGV[4])
  cursor = found[1]
  for i = 1, #found[2], 2 do ids[#ids + 1], raws[#raws + 1] = found[2][i], found[2][i + 1] end
end
if #ids == 0 then return { cursor, ids, raws, '', {} } end

local letters, with, whole = {}, {}, ARGV[5] == '1'
for k = 1, #ids do letters[k], with[k] = 'w', '' end

local function stands(letter, hash, is_ending)
  if server('EXISTS', hash) == 0 then return end
  for k, value in ipairs(server('HMGET', hash, unpack(ids))) do
    if value then
      letters[k] = letter
      with[k] = is_ending and not whole and string.sub(value, 1, 7 + string.byte(value, 7)) or value
    end
  end
end

local function is_due(letter, set)
  if server('EXISTS', set) == 0 then return end
  for k, score in ipairs(server('ZMSCORE', set, unpack(ids))) do
    if score then letters[k] = letter end
  end
end

-- In the end what counts most: see `place.status`.
stands('c', key.cancelled, true)
stands('f', key.failed, true)
stands('s', key.succeeded, true)
stands('h', key.held)
is_due('r', key.retrying)
is_due('d', key.scheduled)
stands('a', key.active)
if not whole then
  for k, raw in ipairs(raws) do
    if record.known(raw) then raws[k] = string.sub(raw, 1, record.head(raw)) end
  end
end
local function beside(hash)
  return server('EXISTS', hash) == 1 and server('HMGET', hash, unpack(ids)) or false
end
local twins = beside(key.blocked)
for k, twin in ipairs(twins or {}) do
  if twin then
    local raw = cmsgpack.unpack(twin)[1]
    twins[k] = whole and raw or string.sub(raw, 1, record.head(raw))
  end
end
return { cursor, ids, raws, table.concat(letters), with, beside(key.states), twins }
