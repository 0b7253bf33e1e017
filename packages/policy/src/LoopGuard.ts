/**
 * Notices an agent that repeats itself.
 *
 * @since 0.1.0
 */
export {}
