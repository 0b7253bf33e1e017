/**
 * Takes the key out of what a server answers: some repeat a key that they do not know, in an error or within a stream, and
 * both are shown and stored.
 */

/** A shorter key is more likely a word, as servers without keys are given, than a secret: a reply may say it. */
const least = 8

/** A fetch whose answers do not hold the key, as it is or as JSON writes it. Without one it is `fetch` itself. */
export const discreet = (key: string | undefined): typeof fetch => {
  if (key === undefined) return fetch
  const forms = [...new Set([key, JSON.stringify(key).slice(1, -1)])]
  return async (input, init) => {
    const response = await fetch(input, init)
    const { body, headers, status, statusText } = response
    if (body === null || (status < 400 && key.length < least)) return response
    const clean = body
      .pipeThrough(new TextDecoderStream("utf-8", { ignoreBOM: true }))
      .pipeThrough(without(forms))
      .pipeThrough(new TextEncoderStream())
    return new Response(clean, { headers, status, statusText })
  }
}

/** Passes on at once whatever can be no beginning of a key. */
const without = (forms: ReadonlyArray<string>): TransformStream<string, string> => {
  let held = ""
  return new TransformStream({
    transform: (piece, controller) => {
      const text = forms.reduce((text, form) => text.replaceAll(form, "…"), held + piece)
      const end = text.length - Math.max(...forms.map((form) => begun(text, form)))
      held = text.slice(end)
      if (end > 0) controller.enqueue(text.slice(0, end))
    },
    flush: (controller) => {
      if (held !== "") controller.enqueue(held)
    }
  })
}

/** How much of the form stands at the end of the text, less than all of it. */
const begun = (text: string, form: string): number => {
  for (let length = Math.min(form.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(form.slice(0, length))) return length
  }
  return 0
}
