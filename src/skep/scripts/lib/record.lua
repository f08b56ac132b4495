-- record: what `jobs` holds of a job; core/record.py tells the layout
local record = {}

-- The place of the last byte before the data.
function record.head(raw)
  local flags, at = string.byte(raw) - 64, 7
  if flags == 0 then return at end
  if bit.band(flags, 2) > 0 then at = at + 6 end
  if bit.band(flags, 4) > 0 then at = at + 6 end
  if bit.band(flags, 8) > 0 then at = at + 1 + string.byte(raw, at + 1) end
  if bit.band(flags, 1) > 0 then at = at + 4 + struct.unpack('>I4', raw, at + 1) end
  return at
end

-- Whether nothing in its options matters to the end of a run that succeeds: no series, no expiry, no retention of its own.
function record.is_light(raw)
  local flags, at = string.byte(raw) - 64, 8
  if bit.band(flags, 1) == 0 then return true end
  if bit.band(flags, 2) > 0 then at = at + 6 end
  if bit.band(flags, 4) > 0 then at = at + 6 end
  if bit.band(flags, 8) > 0 then at = at + 1 + string.byte(raw, at) end
  local options = cmsgpack.unpack(string.sub(raw, at + 4, at + 3 + struct.unpack('>I4', raw, at)))
  return options.again == nil and options.expires == nil and options.keep == nil
end

-- Whether this release wrote it: a newer one leaves other letters.
function record.known(raw)
  local letter = string.byte(raw)
  return letter ~= nil and letter >= 64 and letter < 80
end

function record.task(raw)
  local flags, at = string.byte(raw) - 64, 8
  if bit.band(flags, 8) == 0 then return '' end
  if bit.band(flags, 2) > 0 then at = at + 6 end
  if bit.band(flags, 4) > 0 then at = at + 6 end
  return string.sub(raw, at + 1, at + string.byte(raw, at))
end

function record.priority(raw)
  if bit.band(string.byte(raw), 1) == 0 then return 40 end
  return record.read('', raw).options.priority or 40
end

function record.read(id, raw)
  local flags, at = string.byte(raw) - 64, 8
  local job = { id = id, created = struct.unpack('>I6', raw, 2), life = 0, task = '', options = {} }
  job.due = job.created
  if bit.band(flags, 2) > 0 then job.due, at = struct.unpack('>I6', raw, at) end
  if bit.band(flags, 4) > 0 then job.life, at = struct.unpack('>I6', raw, at) end
  if bit.band(flags, 8) > 0 then
    local size = string.byte(raw, at)
    job.task, at = string.sub(raw, at + 1, at + size), at + 1 + size
  end
  if bit.band(flags, 1) > 0 then
    local size = struct.unpack('>I4', raw, at)
    job.options, at = cmsgpack.unpack(string.sub(raw, at + 4, at + 3 + size)), at + 4 + size
  end
  job.data = string.sub(raw, at)
  return job
end

-- All of it but the data.
function record.write_head(job)
  local flags, parts = 0, { '', struct.pack('>I6', job.created) }
  if job.due ~= job.created then flags, parts[#parts + 1] = flags + 2, struct.pack('>I6', job.due) end
  if job.life ~= 0 then flags, parts[#parts + 1] = flags + 4, struct.pack('>I6', job.life) end
  if job.task ~= '' then flags, parts[#parts + 1] = flags + 8, string.char(#job.task) .. job.task end
  if next(job.options) ~= nil then
    local options = cmsgpack.pack(job.options)
    flags, parts[#parts + 1] = flags + 1, struct.pack('>I4', #options) .. options
  end
  parts[1] = string.char(64 + flags)
  return table.concat(parts)
end

function record.write(job)
  return record.write_head(job) .. job.data
end
