-- Decides when one account may send its next messages of one action, over all limits at once.
--
-- KEYS[1]  lease  string: the token of the pump that serves the account
-- KEYS[2]  log    sorted set: a member per permit, by the latest time at which the receiver may have seen its
--                 message. That time is unknown for a permit in flight: it is *open*, with the score OPEN +
--                 its start, so that it counts in every window and is never trimmed until it is settled.
-- KEYS[3]  state  hash of numbers and a text:
--                 reach               how far back the log is complete; entries that no cap needs are trimmed
--                 day_start, day_end  the calendar day that `used` counts
--                 used                messages of that day, the open ones included
--                 free_at             the end of the gap after the last unit
--                 held_until          nothing is granted before this time (a service asked for a wait)
--                 settled_start       the latest start of a permit that was settled
--                 ended               the latest time at which a message was seen: a batch pause counts from there
--                 batch, batch_seq    messages of the current batch; its permits have numbers above batch_seq
--                 seq, epoch (text)   make permit ids that no other state of this account has made
--                 spans (JSON)        {span: {bucket: messages}}: the settled messages of long spans that have a cap
--                 rights (JSON)       {right: start}: leave to write to a new person, given and not settled yet
--                 new_used            new people of that day, those with open rights included
--                 new_late (JSON)     [at]: when those of them were written to who were after its end
--                 people              2 if new people are counted; 1 by a release that did not move their places
--                 new_spans (JSON)    {span: {bucket: people}}, as `spans`
--                 calls               how many calls have changed the state since it was rebuilt
--                 whole               `calls` at the last change by a release that keeps every field above
-- ARGV[1]  verb   take, settle, hold, rebuild or peek
-- ARGV[2]  JSON   the arguments of the verb, see the function of that name; `now` is absent for Redis' own clock
--
-- Every call that changes the state names the `mark` of the answer before it: the epoch and the number of calls.
-- A state with another mark is not the one that the caller knows. A server that came back with older data (a
-- restored copy, a replica that lost the last seconds) lacks permits that were granted; such a state is dropped,
-- and rebuilt from the ledger.
--
-- Reply, as JSON:
--   ["granted", now, mark, [[at, [permit, ...]], ...], [right, ...], anew]  take: units with their starts, in
--                                                       ascending order, rights for those to new people, and for how
--                                                       many people whom the long spans have not counted
--   ["wait", now, mark, until, reason]                  take: nothing before `until`; a value of WaitReason
--   ["clock", now]                                      take: `now` is outside the range that the caller expects
--   ["use", minute, hour, day, planned, free_at, held_until, [of each span],
--    new_day, [of each span of new people], open rights] peek
--   ["done", mark]                                      settle, hold, rebuild
--   ["lease_lost"]                                      all but peek: `token` does not hold the lease
--   ["forgotten", now]                                  no state, another mark, or too little data to answer
--
-- Times are integer milliseconds. Every key has a TTL.

local LEASE, LOG, STATE = KEYS[1], KEYS[2], KEYS[3]
local OPEN = 1e15 -- above any time, and OPEN + a time is still exact in a double
local TTL = 36 * 3600 * 1000 -- longer than any day; an account that idles for longer is rebuilt

-- The log always has this member, below all times: a log that was lost alone (evicted) is not mistaken for
-- an empty one.
local BOTTOM, BOTTOM_SCORE = 'bottom', -1

-- A long span is counted in so many buckets, and not message by message. All messages of a bucket count as the last
-- moment of it: each counts up to a 96th of its span longer than it has to, and none counts too short.
local BUCKETS = 96

local PLACES_MOVE = 2

local JSON = { spans = true, rights = true, new_spans = true, new_late = true }
local TEXT = { epoch = true, spans = true, rights = true, new_spans = true, new_late = true }

local verb, ask = ARGV[1], cjson.decode(ARGV[2])

local function clock()
  if ask.now then return ask.now end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local now = clock()

local function load()
  local fields = redis.call('HGETALL', STATE)
  if #fields == 0 or redis.call('EXISTS', LOG) == 0 then return nil end
  local state = {}
  for i = 1, #fields, 2 do
    local name, value = fields[i], fields[i + 1]
    state[name] = TEXT[name] and value or tonumber(value)
  end
  -- Older releases did not count calls, or count no long spans and no new people: what they changed is not whole.
  if not state.ended or not state.calls or state.whole ~= state.calls then return nil end
  for name in pairs(JSON) do state[name] = cjson.decode(state[name] or '{}') end
  state.new_used = state.new_used or 0
  return state
end

local function mark(state) return string.format('%s.%d', state.epoch, state.calls) end

-- Returns the state if it is the one that the caller knows. The lease is no proof: older data may have it too.
local function known()
  local state = load()
  if state and mark(state) == ask.mark then return state end
  redis.call('DEL', LOG, STATE)
  return nil
end

-- Counts the call, and returns the new mark.
local function save(state)
  state.calls = state.calls + 1
  state.whole = state.calls
  local fields = {}
  for name, value in pairs(state) do
    fields[#fields + 1] = name
    fields[#fields + 1] = JSON[name] and cjson.encode(value) or value
  end
  redis.call('HSET', STATE, unpack(fields))
  redis.call('PEXPIRE', STATE, TTL)
  redis.call('PEXPIRE', LOG, TTL)
  return mark(state)
end

local function lease_held()
  if redis.call('GET', LEASE) ~= ask.token then return false end
  redis.call('PEXPIRE', LEASE, ask.lease_ttl)
  return true
end

-- Returns the start of the last unit that was not returned.
local function last_start(state)
  local top = redis.call('ZREVRANGE', LOG, 0, 0, 'WITHSCORES')
  return math.max(state.settled_start, tonumber(top[2]) - OPEN)
end

local function width_of(span) return math.ceil(span / BUCKETS) end

-- Returns the moment at which the last message of a bucket leaves a window of `span`.
local function leaves_at(span, bucket) return (bucket + 1) * width_of(span) - 1 + span end

local function add_to_spans(spans, at, count)
  for span, buckets in pairs(spans) do
    local bucket = string.format('%d', math.floor(at / width_of(tonumber(span))))
    buckets[bucket] = (buckets[bucket] or 0) + count
  end
end

-- A permit settled before its time stays at its start; one settled twice (by the next pump, then by its own
-- that was only slow) takes the later time. An unknown one belongs to a lost state: the ledger has it.
local function settle(state, permit, at)
  local score = tonumber(redis.call('ZSCORE', LOG, permit))
  if not score then return end
  if score >= OPEN then
    score = score - OPEN
    state.settled_start = math.max(state.settled_start, score)
  else
    add_to_spans(state.spans, score, -1)
  end
  state.ended = math.max(state.ended, at)
  redis.call('ZADD', LOG, math.max(score, at), permit)
  add_to_spans(state.spans, math.max(score, at), 1)
end

-- Moves the place of a person in the long spans from the last message to them to this one.
local function move_place(state, before, at)
  for span, buckets in pairs(state.new_spans) do
    local bucket = string.format('%d', math.floor(before / width_of(tonumber(span))))
    if (buckets[bucket] or 0) > 0 then buckets[bucket] = buckets[bucket] - 1 end
  end
  add_to_spans(state.new_spans, at, 1)
end

-- Counts a message to a new person: with a right, or without one where the day has counted the person. A place in the
-- long spans is taken anew, or moves from the message `before`: a person counts until their last message has left.
local function settle_person(state, right, at, anew, before)
  if right ~= '' then
    local start = state.rights[right]
    if not start then return end
    state.rights[right] = nil
    at = math.max(start, at)
  end
  at = math.max(at, before)
  -- Without a right, a person whose last message was in the next day already has a place there.
  if at >= state.day_end and (right ~= '' or before < state.day_end) then table.insert(state.new_late, at) end
  if anew then
    add_to_spans(state.new_spans, at, 1)
  elseif before > 0 then
    move_place(state, before, at)
  end
end

local function count_rights(state)
  local count = 0
  for _ in pairs(state.rights) do count = count + 1 end
  return count
end

-- Decides whether a permit is of the current batch. For rebuilt permits this is unknown: they do not shorten it.
local function in_batch(state, permit)
  local epoch, seq = string.match(permit, '^(%x+)%-(%d+)$')
  return epoch == state.epoch and tonumber(seq) > state.batch_seq
end

-- Removes an open permit as if it had never been granted, and returns its start.
local function give_back(state, permit)
  if state.rights[permit] then
    if state.rights[permit] < state.day_end then state.new_used = state.new_used - 1 end
    state.rights[permit] = nil
    return nil
  end
  local score = tonumber(redis.call('ZSCORE', LOG, permit))
  if not score or score < OPEN then return nil end
  redis.call('ZREM', LOG, permit)
  state.used = state.used - 1
  if in_batch(state, permit) then state.batch = state.batch - 1 end
  return score - OPEN
end

local function settle_and_return(state)
  for permit, at in pairs(ask.settled) do settle(state, permit, at) end
  for _, each in ipairs(ask.people) do settle_person(state, each[1], each[2], each[3], each[4]) end
  local starts = {}
  for _, permit in ipairs(ask.returned) do starts[#starts + 1] = give_back(state, permit) end
  if #starts > 0 then
    -- The time of units that were returned whole is free again, if nothing was granted at or after them.
    local last = last_start(state)
    for _, start in ipairs(starts) do
      if start > last then state.free_at = math.min(state.free_at, start) end
    end
  end
  -- But not the gap after a unit that began later than planned.
  state.free_at = math.max(state.free_at, ask.free_at)
end

-- Decides whether the state can answer for the asked day and caps. A new day begins with the messages that may
-- still arrive in it; a day that overlaps (the account moved to another zone) can only be counted by the ledger.
local function knows(state)
  if ask.reach > state.reach then return false end
  for _, each in ipairs(ask.spans) do
    if not state.spans[string.format('%d', each.span)] then return false end
  end
  if ask.counts_people and state.people ~= PLACES_MOVE then return false end
  for _, each in ipairs(ask.new_spans) do
    if not state.new_spans[string.format('%d', each.span)] then return false end
  end
  if ask.day_start >= state.day_end then
    state.used = redis.call('ZCOUNT', LOG, ask.day_start, '+inf')
    local late = {}
    -- Messages without a right that are under way may arrive in the new day.
    state.new_used = count_rights(state) + (ask.people_under_way or 0)
    for _, at in ipairs(state.new_late) do
      if at >= ask.day_start then state.new_used = state.new_used + 1 end
      if at >= ask.day_end then table.insert(late, at) end
    end
    state.new_late = late
  elseif ask.day_start ~= state.day_start then
    return false
  end
  state.day_start, state.day_end = ask.day_start, ask.day_end
  return true
end

local function trimmed(asked, spans)
  local kept = {}
  for _, each in ipairs(asked) do
    local name = string.format('%d', each.span)
    kept[name] = {}
    for bucket, count in pairs(spans[name]) do
      if count ~= 0 and leaves_at(each.span, tonumber(bucket)) > now then kept[name][bucket] = count end
    end
  end
  return kept
end

-- Permits that are settled in the next day stay for its count.
local function trim(state)
  redis.call('ZREMRANGEBYSCORE', LOG, 0, math.min(now - ask.reach, state.day_end - 1))
  state.reach = ask.reach
  state.spans, state.new_spans = trimmed(ask.spans, state.spans), trimmed(ask.new_spans, state.new_spans)
  state.people = ask.counts_people and PLACES_MOVE or 0
end

-- Returns the time from which a window of `span` has room for a unit under `cap`: when the newest message that may
-- not be in the window together with the unit has left it. Where that message is open the time is unknown: then
-- returns the earliest possible time, and true.
local function room_at(cap, span)
  if cap == 0 then return 0, false end
  local rank = cap - ask.cost
  local blocking = redis.call('ZREVRANGE', LOG, rank, rank, 'WITHSCORES')
  if #blocking == 0 then return 0, false end
  local time = tonumber(blocking[2])
  if time < OPEN then return time + span, false end
  return math.max(time - OPEN + span, now + ask.recheck), true
end

-- Returns how many settled messages of a span still count at a moment.
local function settled_in(spans, span, at)
  local sum = 0
  for bucket, count in pairs(spans[string.format('%d', span)]) do
    if leaves_at(span, tonumber(bucket)) > at then sum = sum + count end
  end
  return sum
end

local function count_open() return redis.call('ZCOUNT', LOG, string.format('%d', OPEN), '+inf') end

-- Returns the settled messages of each asked span and its buckets from the oldest on: they stay as they are while units
-- are granted.
local function read_spans(state)
  local found = {}
  for i, each in ipairs(ask.spans) do
    local buckets = {}
    for bucket, count in pairs(state.spans[string.format('%d', each.span)]) do
      buckets[#buckets + 1] = { tonumber(bucket), count }
    end
    table.sort(buckets, function(one, other) return one[1] < other[1] end)
    local settled = settled_in(state.spans, each.span, now)
    found[i] = { name = each.name, span = each.span, cap = each.cap, buckets = buckets, settled = settled }
  end
  return found
end

-- Returns the same as `room_at`, for a long span, beside `open` permits that have no time yet.
local function span_room_at(each, open)
  local over = each.settled + open + ask.cost - each.cap
  if over <= 0 then return 0, false end
  for _, bucket in ipairs(each.buckets) do
    local leaves = leaves_at(each.span, bucket[1])
    if leaves > now then
      over = over - bucket[2]
      if over <= 0 then return leaves, false end
    end
  end
  local oldest = redis.call('ZRANGEBYSCORE', LOG, string.format('%d', OPEN), '+inf', 'WITHSCORES', 'LIMIT', over - 1, 1)
  return math.max(tonumber(oldest[2]) - OPEN + each.span, now + ask.recheck), true
end

-- Returns the earliest start of a unit, the reason for it, whether open permits forbid it, and whether it begins a
-- batch.
local function earliest(state, last, spans, open)
  local at, reason = math.max(now, ask.day_start), 'gap'
  local function not_before(time, why)
    if time > at then at, reason = time, why end
  end
  local minute, minute_open = room_at(ask.per_minute, ask.minute)
  local hour, hour_open = room_at(ask.per_hour, ask.hour)
  not_before(state.free_at, 'gap')
  not_before(state.held_until, 'slowed')
  not_before(minute, 'per_minute')
  not_before(hour, 'per_hour')
  local span_open = false
  for _, each in ipairs(spans) do
    local room, unknown = span_room_at(each, open)
    not_before(room, each.name)
    span_open = span_open or unknown
  end

  local rested = last + ask.batch_pause
  local new_batch = state.batch == 0 or at >= rested
  if ask.batch_size > 0 and not new_batch and state.batch + ask.cost > ask.batch_size then
    not_before(rested, 'batch_pause')
    new_batch = true
  end
  return at, reason, minute_open or hour_open or span_open, new_batch
end

local function is_long(reason)
  for _, each in ipairs(ask.spans) do
    if each.name == reason then return true end
  end
  return false
end

-- The next day has to be asked for; a long span may end after it.
local function wait(until_time, reason)
  if not is_long(reason) then until_time = math.min(until_time, ask.day_end) end
  -- The caller's day is over by this clock: its own is a little behind.
  if until_time <= now then until_time = now + ask.recheck end
  return { 'wait', now, until_time, reason }
end

local function grant(state, at, gap, new_batch)
  local permits, entries = {}, {}
  for i = 1, ask.cost do
    permits[i] = string.format('%s-%d', state.epoch, state.seq + i)
    entries[2 * i - 1], entries[2 * i] = OPEN + at, permits[i]
  end
  redis.call('ZADD', LOG, unpack(entries))
  if new_batch then state.batch, state.batch_seq = 0, state.seq end
  state.batch = state.batch + ask.cost
  state.seq = state.seq + ask.cost
  if ask.batch_size == 0 then state.batch, state.batch_seq = 0, state.seq end
  state.used = state.used + ask.cost
  state.free_at = at + gap
  return { at, permits }
end

-- Returns as many rights as new people may be written to with these units, and how many of these people may be anew in
-- the long spans.
local function grant_rights(state, units)
  local most, rights = math.min(#units, ask.new_wanted), {}
  local anew = most
  for _, each in ipairs(ask.new_spans) do
    anew = math.min(anew, each.cap - count_rights(state) - settled_in(state.new_spans, each.span, now))
  end
  if ask.new_per_day > 0 then most = math.min(most, ask.new_per_day - state.new_used) end
  for i = 1, most do
    state.seq = state.seq + 1
    rights[i] = string.format('%s-%d', state.epoch, state.seq)
    state.rights[rights[i]] = units[i][1]
  end
  state.new_used = state.new_used + #rights
  return rights, math.max(0, math.min(anew, #rights))
end

local function grant_units(state)
  local units, last, before = {}, math.max(last_start(state), state.ended), now
  local spans, under_way = read_spans(state), count_open()
  for i, gap in ipairs(ask.gaps) do
    local at, reason, open, new_batch = earliest(state, last, spans, under_way)
    local full = ask.per_day > 0 and state.used + ask.cost > ask.per_day
    if full and not (is_long(reason) and at > ask.day_end) then at, reason = ask.day_end, 'per_day' end
    if full or open or at > math.min(before + ask.near, now + ask.horizon) or at >= ask.day_end then
      if i == 1 then return wait(at, reason) end
      break
    end
    units[i], last, before = grant(state, at, gap, new_batch), at, at
    under_way = under_way + ask.cost
  end
  local rights, anew = grant_rights(state, units)
  return { 'granted', now, units, rights, anew }
end

-- Records the report of a pump that lost its lease: its messages did leave. The mark changes, so that the pump that
-- serves the account now finds a state that it does not know, and rebuilds it from the ledger.
local function late_news()
  if next(ask.settled) or next(ask.returned) or next(ask.people) then
    local state = load()
    if state then
      settle_and_return(state)
      save(state)
    end
  end
  return { 'lease_lost' }
end

-- With a wrong clock, messages would drop out of their windows too early, or the next ones would wait too long.
local function clock_is_off()
  return ask.earliest and (now < ask.earliest or now > ask.latest)
end

local verbs = {}

-- token, lease_ttl, mark, earliest and latest (what `now` may be; may be absent), settled {permit: at},
-- returned [permit], free_at, cost, gaps [one per wanted unit], horizon (no unit starts later than this from now), near
-- (nor later than this after the one before), recheck, per_minute, minute, per_hour,
-- hour, per_day, day_start, day_end, spans [{name, span, cap}], people [[right or '', at, whether the
-- long spans count it anew, the message before or 0]], people_under_way (messages to new people without a right),
-- counts_people, new_wanted (rights), new_per_day, new_spans [{name, span, cap}], batch_size, batch_pause, reach
function verbs.take()
  if not lease_held() then return late_news() end
  if clock_is_off() then return { 'clock', now } end
  local state = known()
  if state then settle_and_return(state) end
  if not state or not knows(state) then
    redis.call('DEL', LOG, STATE)
    return { 'forgotten', now }
  end
  trim(state)
  local reply = grant_units(state)
  table.insert(reply, 3, save(state))
  return reply
end

-- token, lease_ttl, mark, settled, returned, people, free_at
function verbs.settle()
  if not lease_held() then return late_news() end
  local state = known()
  if not state then return { 'forgotten', now } end
  settle_and_return(state)
  return { 'done', save(state) }
end

-- token, lease_ttl, mark, held_until
function verbs.hold()
  if not lease_held() then return { 'lease_lost' } end
  local state = known()
  if not state then return { 'forgotten', now } end
  state.held_until = math.max(state.held_until, ask.held_until)
  return { 'done', save(state) }
end

-- token, lease_ttl, epoch, times [at], in_flight {permit: start}, reach, day_start, day_end, used,
-- counts {span: {bucket: messages}}, rights {right: start}, counts_people, new_used, new_late,
-- new_counts {span: {bucket: people}}, batch, last_start, free_at, held_until
function verbs.rebuild()
  if not lease_held() then return { 'lease_lost' } end
  redis.call('DEL', LOG, STATE)
  redis.call('ZADD', LOG, BOTTOM_SCORE, BOTTOM)
  for i, at in ipairs(ask.times) do redis.call('ZADD', LOG, at, string.format('%s+%d', ask.epoch, i)) end
  for permit, start in pairs(ask.in_flight) do redis.call('ZADD', LOG, OPEN + start, permit) end
  return {
    'done',
    save({
      reach = ask.reach,
      day_start = ask.day_start,
      day_end = ask.day_end,
      used = ask.used,
      spans = ask.counts,
      rights = ask.rights,
      new_used = ask.new_used,
      new_late = ask.new_late,
      people = ask.counts_people and PLACES_MOVE or 0,
      new_spans = ask.new_counts,
      free_at = ask.free_at,
      held_until = ask.held_until,
      settled_start = ask.last_start,
      ended = ask.last_start,
      batch = ask.batch,
      batch_seq = 0,
      seq = 0,
      epoch = ask.epoch,
      calls = 0,
    }),
  }
end

-- minute, hour, day_start, day_end, spans [{name, span, cap}], new_spans, reach
function verbs.peek()
  local state = load()
  if not state or not knows(state) then return { 'forgotten', now } end
  local function count(span) return redis.call('ZCOUNT', LOG, string.format('(%d', now - span), '+inf') end
  local planned = redis.call('ZCOUNT', LOG, string.format('(%d', OPEN + now), '+inf')
  local open, spans = count_open(), {}
  for i, each in ipairs(ask.spans) do spans[i] = settled_in(state.spans, each.span, now) + open end
  local rights, people = count_rights(state), {}
  for i, each in ipairs(ask.new_spans) do people[i] = settled_in(state.new_spans, each.span, now) + rights end
  return {
    'use', count(ask.minute), count(ask.hour), state.used, planned, state.free_at, state.held_until, spans,
    state.new_used, people, rights,
  }
end

return cjson.encode(verbs[verb]())
