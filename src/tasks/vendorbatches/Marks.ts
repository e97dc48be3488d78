import { Effect, Stream } from "effect"
import { VendorError } from "../../vendors/VendorError.ts"

const lineFeed = 0x0a

/**
 * Removes the mark that was put before each `custom_id` when the batch was submitted. It is removed wherever a JSON
 * string begins with it, which is safe because only the gateway and the vendor know the mark, and the model never sees
 * it. Fails with `AMBIGUOUS` if the first result has no mark: the batch was found in the vendor's list and belongs to
 * another submit.
 */
export const withoutMarks = (
  mark: string,
  bytes: Stream.Stream<Uint8Array, VendorError>
): Stream.Stream<Uint8Array, VendorError> =>
  Stream.suspend(() => {
    const marked = Buffer.from(`"${mark}`)
    let kept = Buffer.alloc(0)
    let isOurs = false

    /** Emits all but the last bytes, because a mark may begin in them. */
    const push = (chunk: Uint8Array, isLast: boolean): Effect.Effect<Uint8Array, VendorError> => {
      const all = Buffer.concat([kept, chunk])
      const parts: Array<Buffer> = []
      let from = 0
      for (let at = all.indexOf(marked); at >= 0; at = all.indexOf(marked, from)) {
        if (!isOurs && all.subarray(0, at).includes(lineFeed)) return Effect.fail(notOurs)
        isOurs = true
        parts.push(all.subarray(from, at + 1))
        from = at + marked.length
      }
      const end = isLast ? all.length : Math.max(from, all.length - marked.length + 1)
      if (!isOurs && all.subarray(0, end).includes(lineFeed)) return Effect.fail(notOurs)
      parts.push(all.subarray(from, end))
      kept = Buffer.from(all.subarray(end))
      return Effect.succeed(Buffer.concat(parts))
    }
    return Stream.concat(
      Stream.mapEffect(bytes, (chunk) => push(chunk, false)),
      Stream.fromEffect(Effect.suspend(() => push(Buffer.alloc(0), true)))
    ).pipe(Stream.filter(({ length }) => length > 0))
  })

const notOurs = new VendorError({
  class: "AMBIGUOUS",
  message: "The response to the submit was lost, and the batch that was found is another one"
})
