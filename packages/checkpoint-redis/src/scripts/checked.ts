/**
 * Lua that every script about one Run begins with: it reads the head, and says what is damaged in it.
 *
 * KEYS  1 head (hash), 2 events (stream).
 *
 * `headOf(sound)` gives a table of the head's fields but the body; or nil where there is no such Run; or nil and the path of
 * what is damaged. `sound` is a row that need not be looked at, since the caller knows it. Reads only, so a script that goes
 * no further than this has changed nothing (RI-072). `hasLast(seq)`: whether there are events that end at that seq.
 *
 * @since 0.1.0
 */
export const checked = `
local function isCount(text)
  return text and #text <= 16 and string.match(text, '^%d+$') and tonumber(text) <= 9007199254740991
end
local function isNumber(text)
  local value = text and string.match(text, '^%-?%d+%.?%d*[eE]?[+-]?%d*$') and tonumber(text)
  return value and math.abs(value) < math.huge
end
local function isText(value)
  return type(value) == 'string'
end
local function isRow(text)
  local read, row = pcall(cjson.decode, text or '')
  if not read or type(row) ~= 'table' or not isText(row.status) or not isText(row.agent) then return false end
  if row.session ~= nil and not isText(row.session) or row.parent ~= nil and not isText(row.parent) then return false end
  if row.wakeAt ~= nil and type(row.wakeAt) ~= 'number' or type(row.waiting) ~= 'table' then return false end
  for _, kind in pairs(row.waiting) do
    if not isText(kind) then return false end
  end
  return true
end
local function hasLast(seq)
  return #redis.call('XRANGE', KEYS[2], seq .. '-0', seq .. '-0') == 1
end
local function headOf(sound)
  local found = redis.call('HMGET', KEYS[1], 'seq', 'epoch', 'owner', 'until', 'row', 'updatedAt')
  local head = {seq = found[1], epoch = found[2], owner = found[3], ends = found[4], row = found[5], updatedAt = found[6]}
  if not head.seq then
    if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then return nil, 'head' end
    return nil
  end
  if not isCount(head.seq) then return nil, 'head.seq' end
  if not isCount(head.epoch) then return nil, 'head.epoch' end
  if head.owner and not isCount(head.ends) then return nil, 'head.until' end
  if not isNumber(head.updatedAt) then return nil, 'head.updatedAt' end
  if head.row ~= sound and not isRow(head.row) then return nil, 'head.row' end
  if redis.call('HEXISTS', KEYS[1], 'body') == 0 then return nil, 'head.body' end
  return head
end`
