/**
 * Cuts text without splitting a character (RI-041).
 *
 * @since 0.1.0
 */

/** At most `max` UTF-16 units from the start. */
export const cut = (text: string, max: number): string => {
  if (text.length <= max) return text
  const last = text.charCodeAt(max - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max)
}

/** How much of a result a text takes: its length within JSON, which escapes line ends and quotes. */
export const sizeInJson = (text: string): number => JSON.stringify(text).length - 2
