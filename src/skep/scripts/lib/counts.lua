-- counts: what a life has been through; only of jobs whose first run was not their last
local counts = {}

function counts.read(id)
  local packed = server('HGET', key.states, id)
  return packed and cmsgpack.unpack(packed) or {}
end

function counts.write(id, known)
  if next(known) ~= nil then
    server('HSET', key.states, id, cmsgpack.pack(known))
  else
    server('HDEL', key.states, id)
  end
end

function counts.add(known, name)
  known[name] = (known[name] or 0) + 1
end
