-- answer: what those who wait for a life hear of it: its end, and its progress if they asked for that
--
-- `awaited` holds of an id until when somebody waits, and a `p` behind that who wants to hear of progress.
local answer = {}

local function write(id, life, status, text)
  local time = server('TIME')
  server('XADD', key.answers, 'MINID', '~', (time[1] - 10) * 1000, '*', 'id', id, 'life', life, 'status', status, 'text', text)
end

-- Whether somebody waits for this id, and to hear of progress.
local function waits(id)
  local wanted = server('HGET', key.awaited, id)
  if not wanted then return false, false end
  return tonumber(string.match(wanted, '^%d+')) >= now, string.sub(wanted, -1) == 'p'
end

-- Its second job is waited for under the same id: then the note stays, and is swept when its time is over.
function answer.ended(job, status, text)
  local somebody = waits(job.id)
  if somebody then write(job.id, job.life, status, text) end
  if status == 'merged' or server('HEXISTS', key.active, job.id) + server('HEXISTS', key.blocked, job.id) > 0 then return end
  server('HDEL', key.awaited, job.id)
end

function answer.progress(id, life, text)
  local somebody, progress = waits(id)
  if somebody and progress then write(id, life, 'progress', text) end
end

function answer.expect(id, ms, progress)
  local _, before = waits(id)
  server('HSET', key.awaited, id, now + ms .. ((progress or before) and ' p' or ''))
end

-- Notes whose time is over: whoever makes one looks at some.
function answer.sweep()
  local some = server('HRANDFIELD', key.awaited, 10, 'WITHVALUES')
  for i = 1, #some, 2 do
    if tonumber(string.match(some[i + 1], '^%d+')) < now then server('HDEL', key.awaited, some[i]) end
  end
end
