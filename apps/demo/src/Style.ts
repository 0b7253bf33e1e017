/**
 * The few ways to stress text on a terminal, or none of them.
 */

type Mark = (text: string) => string

export interface Style {
  /** The text without what could move the cursor or mislead the eye, but for the marks below. */
  readonly safe: Mark
  readonly bold: Mark
  readonly dim: Mark
  readonly red: Mark
  readonly green: Mark
  readonly cyan: Mark
}

const same: Mark = (text) => text

/** What a tool or a model says may hold control characters, or ones that turn the direction of writing. */
const unsafe = /(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu

export const plain: Style = {
  safe: (text) => text.replaceAll("\r\n", "\n").replace(unsafe, "\ufffd"),
  bold: same,
  dim: same,
  red: same,
  green: same,
  cyan: same
}

const sgr =
  (on: number, off: number): Mark =>
  (text) =>
    `\u001b[${on}m${text}\u001b[${off}m`

/** Our own marks, which do no harm even if somebody else wrote them. */
const marks = new RegExp(`(${"\u001b"}\\[(?:1|2|22|31|32|36|39)m)`)

export const colours: Style = {
  safe: (text) =>
    text
      .split(marks)
      .map((part) => (marks.test(part) ? part : plain.safe(part)))
      .join(""),
  bold: sgr(1, 22),
  dim: sgr(2, 22),
  red: sgr(31, 39),
  green: sgr(32, 39),
  cyan: sgr(36, 39)
}
