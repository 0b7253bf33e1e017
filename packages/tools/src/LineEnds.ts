/**
 * Keeps the line ends of a file where a model, which writes LF, does not know them.
 *
 * @since 0.1.0
 */

/** The text with CRLF at the end of each line. */
export const toCrlf = (text: string): string => text.replace(/\r?\n/g, "\r\n")

/** It has line ends, and all of them are CRLF. */
export const isCrlf = (text: string): boolean => text.includes("\r\n") && !/(?<!\r)\n/.test(text)

/** What a file that held `before` shall hold now: with CRLF if that had it everywhere, and the new text has no CR. */
export const kept = (before: string, text: string): string =>
  isCrlf(before) && !text.includes("\r") ? toCrlf(text) : text
