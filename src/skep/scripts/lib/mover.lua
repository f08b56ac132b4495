-- mover: decided rows become jobs, a chunk at a time, by whoever comes by
--@use emit fresh put
local mover = {}

local function put_all(chunk, state)
  if chunk[1] == 'fresh' then
    fresh.add(chunk[2], tonumber(chunk[3]), tonumber(chunk[4]), chunk[5], tonumber(chunk[6]), chunk, 7)
    state.added = state.added + (#chunk - 6) / 2
    return
  end
  for i = 2, #chunk, 3 do
    local outcome = put.one(chunk[i], chunk[i + 1], cmsgpack.unpack(chunk[i + 2]))[1]
    state[outcome] = state[outcome] + 1
  end
end

local function rows_of(chunk)
  return chunk[1] == 'fresh' and (#chunk - 6) / 2 or (#chunk - 1) / 3
end

-- One chunk of the write that was decided first. Gives that write, if there is one.
function mover.step()
  local write = server('LINDEX', key.moving, 0)
  if not write then return nil end
  local state = cmsgpack.unpack(server('HGET', key.writes, write))
  local token = state.left[1]
  local known = cmsgpack.unpack(server('HGET', key.staged, token))
  local nth = (state.nth or 0) + 1
  local field = token .. ':' .. nth
  local packed = server('HGET', key.staged, field)
  -- The first write frees memory: decided rows are moved on a full server too.
  server('HDEL', key.staged, field)
  local chunk = cmsgpack.unpack(packed)
  server('HINCRBY', key.queue, 'staged_rows', -rows_of(chunk))
  put_all(chunk, state)
  state.nth = nth
  if nth == known.chunks then
    server('HDEL', key.staged, token)
    table.remove(state.left, 1)
    state.nth = 0
  end
  if #state.left == 0 then server('LPOP', key.moving) end
  server('HSET', key.writes, write, cmsgpack.pack(state))
  return write
end

-- Staged rows that nothing decided in their time. True when all of them are gone.
function mover.sweep(token)
  local packed = server('HGET', key.staged, token)
  if not packed then return true end
  local known = cmsgpack.unpack(packed)
  local field = token .. ':' .. known.chunks
  local chunk = known.chunks > 0 and server('HGET', key.staged, field)
  if not chunk then
    server('HDEL', key.staged, token)
    return true
  end
  server('HINCRBY', key.queue, 'staged_rows', -rows_of(cmsgpack.unpack(chunk)))
  server('HDEL', key.staged, field)
  -- From its first chunk on the token is gone: nobody may decide what is left of it.
  known.chunks, known.going = known.chunks - 1, true
  server('HSET', key.staged, token, cmsgpack.pack(known))
  return false
end
