-- redact: succeeded | failed | cancelled -> succeeded | failed | cancelled
--
-- Data, result, the error's texts and logs are blanked; events already written keep what they carry.
--
-- KEYS  queue, ...   every key of the queue
-- ARGV  now, call, id, life, ...
-- gives a packed list of the ids that this call redacted
--@use steer keep record counts
local function blank(text)
  local fine, parsed = pcall(cjson.decode, text)
  if not fine or type(parsed) ~= 'table' then return 'null' end
  return cjson.encode({ type = parsed.type, message = '', traceback = '', kind = parsed.kind })
end

return steer.each(3, function(job, status)
  if not keep.hashes[status] then return false end
  job.data = 'null'
  server('HSET', key.jobs, job.id, record.write(job))
  local ending = server('HGET', keep.hashes[status], job.id)
  local at = 7 + string.byte(ending, 7)
  local text = status == 'cancelled' and string.sub(ending, at + 1) or status == 'failed' and blank(string.sub(ending, at + 1)) or 'null'
  server('HSET', keep.hashes[status], job.id, string.sub(ending, 1, at) .. text)
  local known = counts.read(job.id)
  if known.error then
    known.error = blank(known.error)
    counts.write(job.id, known)
  end
  keep.drop_logs(job.id)
  server('HDEL', key.progress, job.id)
  steer.told('d', job, status)
  return true
end)
