/**
 * Lua about the mark of the index: a hash that says that the index was built whole, and how many entries each set has.
 *
 * KEYS  the last one is the mark, the others are sets of the index.
 *
 * The fields of the mark are `version` (written when all Runs have been put into the index; without it some may be missing),
 * `builder` and `until` (who builds it now, until when in ms), and for each set that is not empty its key with its size. A set
 * that has fewer entries than that, or is of another type, was lost.
 *
 * @since 0.1.0
 */

/** Of the sets that there are. A version with other sets needs another number: then the index is built anew. */
export const version = "1"

export const marked = `
local mark = KEYS[#KEYS]
local function sizeOf(key)
  local size = redis.pcall('ZCARD', key)
  if type(size) == 'number' then return size end
  if not string.find(size.err, 'WRONGTYPE', 1, true) then error(size.err) end
  return nil
end
local function promised(key)
  return tonumber(redis.call('HGET', mark, key) or '0')
end
local function isWhole()
  if redis.pcall('HGET', mark, 'version') ~= '${version}' then return false end
  for i = 1, #KEYS - 1 do
    local size = sizeOf(KEYS[i])
    if not size or size < promised(KEYS[i]) then return false end
  end
  return true
end`
