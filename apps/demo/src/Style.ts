/**
 * The few ways to stress text on a terminal, or none of them.
 */

type Mark = (text: string) => string

export interface Style {
  readonly bold: Mark
  readonly dim: Mark
  readonly red: Mark
  readonly green: Mark
  readonly cyan: Mark
}

const same: Mark = (text) => text

export const plain: Style = { bold: same, dim: same, red: same, green: same, cyan: same }

const sgr =
  (on: number, off: number): Mark =>
  (text) =>
    `\u001b[${on}m${text}\u001b[${off}m`

export const colours: Style = {
  bold: sgr(1, 22),
  dim: sgr(2, 22),
  red: sgr(31, 39),
  green: sgr(32, 39),
  cyan: sgr(36, 39)
}
