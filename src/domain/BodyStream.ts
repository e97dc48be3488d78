import { Cause, Effect, Stream } from "effect"
import type { Duration } from "effect"
import type { Readable } from "node:stream"

export interface BodyFaults<E> {
  /** The longest wait for the next bytes. */
  readonly silenceMax: Duration.Duration
  readonly onSilence: () => E
  readonly onBroken: (cause: unknown) => E
}

/**
 * The bytes of a response as they arrive. Takes bytes that have arrived without a timer, because Effect's own
 * `fromAsyncIterable` and `timeoutOrElse` cost two fibers and a queue per body. The caller destroys the body.
 */
export const bodyStream = <E>(
  body: Readable,
  { onBroken, onSilence, silenceMax }: BodyFaults<E>
): Stream.Stream<Uint8Array, E> =>
  Stream.fromPull(
    Effect.sync(() => {
      // Remembers an event that occurs before it is awaited
      let isStirred = false
      let wake: (() => void) | undefined
      const stir = () => {
        isStirred = true
        wake?.()
      }
      for (const event of ["readable", "end", "error", "close"]) body.on(event, stir)
      const stirred = Effect.callback<void>((resume) => {
        wake = () => {
          wake = undefined
          resume(Effect.void)
        }
        if (isStirred) wake()
        return Effect.sync(() => {
          wake = undefined
        })
      }).pipe(
        Effect.timeoutOrElse({ duration: silenceMax, orElse: () => Effect.fail(onSilence()) })
      )
      const pull: Effect.Effect<readonly [Uint8Array], E | Cause.Done> = Effect.suspend(() => {
        isStirred = false
        const chunk: Uint8Array | null = body.errored === null ? body.read() : null
        if (chunk !== null) return Effect.succeed([chunk])
        if (body.readableEnded) return Cause.done()
        if (body.errored !== null) return Effect.fail(onBroken(body.errored))
        if (body.closed) return Effect.fail(onBroken(new Error("The connection closed")))
        return Effect.andThen(stirred, pull)
      })
      return pull
    })
  )
