/** What a customer collects. Prices are in cents. */

export const centsPerPoint = 100
export const goldFrom = 500

/** One point for every whole euro. */
export function points(cents) {
  return Math.ceil(cents / centsPerPoint)
}

/** Customers with 500 points or more are gold. */
export function isGold(collected) {
  return collected >= goldFrom
}
