/**
 * Writes the way from a Run to a call of a worker as one word: `t2.0/t1.3`.
 */

/** The call of a wait, seen from the Run that lists it. */
export const of = ({ id, path = [] }: { readonly id: string; readonly path?: ReadonlyArray<string> }): string =>
  [...path, id].join("/")

export const parse = (
  word: string
): { readonly callId: string; readonly path?: { readonly path: ReadonlyArray<string> } } => {
  const ids = word.split("/")
  const callId = ids.at(-1) ?? ""
  return ids.length === 1 ? { callId } : { callId, path: { path: ids.slice(0, -1) } }
}
