-- calls: a call that is sent twice takes effect once; the second time it is given the first answer
--
-- `call` is a lane and a number of 16 digits with one letter between them, or nothing: reads, claims and renewals go without.
-- The letter is a space, or `+` where the client waits for copies. `lanes` holds lane -> number, time, answer of its last call.
-- An answer begins with `=`, or with `!` where it is a refusal: kept too, else an attempt held back on its way would be
-- applied after its resend had been refused.
local calls = {}
local lane, number = string.sub(call, 1, -18), string.sub(call, -16)

-- The answer kept for this number of the lane, if it was its last call; and the number of that last call.
function calls.kept(which)
  local last = server('HGET', key.lanes, lane)
  if not last then return nil, nil end
  if string.sub(last, 1, 16) == which then return string.sub(last, 30), which end
  return nil, string.sub(last, 1, 16)
end

-- What to answer at once: the first answer of a resend, or that a copy comes too late. Nothing: go on.
function calls.before(now, call)
  if call == '' then return nil end
  local answer, last = calls.kept(number)
  if answer then
    -- WAIT counts from the last write of its own connection, and a resend has written nothing yet.
    if string.byte(call, -17) == 43 then calls.answered(now, call, answer) end
    return answer
  end
  if last and tonumber(last) > tonumber(number) then return redis.error_reply('STALE a later call of this lane was answered') end
  -- Fields are swept after two hours of silence: of a lane as old as that, nobody knows whether it was.
  if not last and now / 1000 - tonumber(string.match(lane, ':(%d+):[^:]*$')) > 3600 then
    return redis.error_reply('OLDLANE this lane is not known any more')
  end
  return nil
end

-- Last of all: what a script says after its answer is kept, a resend does not hear.
function calls.answered(now, call, answer)
  if call == '' then return answer end
  local value = number .. string.format('%013.0f', now) .. answer
  if type(redis.pcall('HSET', key.lanes, lane, value)) == 'table' then
    -- A full server refuses it where nothing was written before; after a write that frees memory it does not.
    server('HDEL', key.lanes, '')
    server('HSET', key.lanes, lane, value)
  end
  return answer
end

-- Who says this: the host and process of the client.
function calls.by(call)
  return string.match(call, '^([^:]*:%d+):') or ''
end

-- Lanes that fell silent, a few at a time: whoever comes by looks at some.
function calls.sweep(now)
  local some = server('HRANDFIELD', key.lanes, 20, 'WITHVALUES')
  for i = 1, #some, 2 do
    if now - tonumber(string.sub(some[i + 1], 17, 29)) > 7200000 then server('HDEL', key.lanes, some[i]) end
  end
end
