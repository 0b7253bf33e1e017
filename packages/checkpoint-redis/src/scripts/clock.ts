/**
 * Lua that reads the server's TIME, by which all leases end (C4), in ms since the epoch.
 *
 * `now` is a number; `after(ttl)` the moment so many ms later as the text that is stored. Its names are local to the block
 * that it stands in, so a script asks for the time only where it needs it.
 *
 * @since 0.1.0
 */
export const clock = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function after(ttl) return string.format('%.0f', now + tonumber(ttl)) end`
