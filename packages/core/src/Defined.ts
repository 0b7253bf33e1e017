/**
 * Leaves fields out rather than setting them to undefined, as exact optional properties and small journals want it.
 *
 * @since 0.1.0
 */

/** The fields of `A`, those that may be undefined as optional ones. */
export type Defined<A> = {
  readonly [K in keyof A as undefined extends A[K] ? never : K]: A[K]
} & { readonly [K in keyof A as undefined extends A[K] ? K : never]?: Exclude<A[K], undefined> }

/** The fields that are set. */
export const defined = <A extends object>(fields: A): Defined<A> => {
  const set: { [key: string]: unknown } = {}
  for (const key in fields) if (fields[key] !== undefined) set[key] = fields[key]
  return set as Defined<A>
}
