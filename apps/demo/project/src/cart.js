/** A shopping cart. Prices are in cents; a line is `{ price, quantity }`. */

export const bulkPieces = 10
export const bulkPercent = 15
export const freeShippingFrom = 5000
export const shippingFee = 490

/** How many pieces are in the cart. */
export function pieces(lines) {
  return lines.reduce((sum, line) => sum + line.quantity, 0)
}

/** What they cost together. */
export function subtotal(lines) {
  return lines.reduce((sum, line) => sum + line.price * line.quantity, 0)
}

/** The bulk discount: 15 percent from ten pieces on. */
export function discount(lines) {
  return pieces(lines) > bulkPieces ? Math.round((subtotal(lines) * bulkPercent) / 100) : 0
}

/** Orders of 50 euros or more, after the discount, ship free. */
export function shipping(lines) {
  return subtotal(lines) - discount(lines) >= freeShippingFrom ? 0 : shippingFee
}

/** What the customer pays. */
export function total(lines) {
  return subtotal(lines) - discount(lines) + shipping(lines)
}
