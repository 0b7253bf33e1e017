/**
 * The bugs that `--bug` plants into the bundled project, in place of the one that it comes with.
 */

export interface Bug {
  /** What a person would call it. */
  readonly title: string
  /** The code as it should be, which occurs once, and what stands there instead. */
  readonly right: string
  readonly wrong: string
}

export const file = "src/cart.js"

/** The bug that the bundled project comes with. */
export const bundled: Bug = {
  title: "the discount starts at eleven pieces instead of ten",
  right: "pieces(lines) >= bulkPieces",
  wrong: "pieces(lines) > bulkPieces"
}

/** 1 to 4. The last one needs understanding that the offline model does not have. */
export const planted: readonly [Bug, Bug, Bug, Bug] = [
  {
    title: "an order of exactly 50 euros pays for shipping",
    right: ">= freeShippingFrom",
    wrong: "> freeShippingFrom"
  },
  { title: "the discount is 12 percent instead of 15", right: "bulkPercent = 15", wrong: "bulkPercent = 12" },
  {
    title: "the price of a line is added to its quantity",
    right: "line.price * line.quantity",
    wrong: "line.price + line.quantity"
  },
  {
    title: "the discount is taken from the number of pieces, not from what they cost",
    right: "Math.round((subtotal(lines)",
    wrong: "Math.round((pieces(lines)"
  }
]

/** The bundled source with `bug` in place of its own. */
export const plant = (source: string, { right, wrong }: Bug): string =>
  source.replace(bundled.wrong, () => bundled.right).replace(right, () => wrong)
