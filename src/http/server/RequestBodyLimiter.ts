import { Context, Effect, Layer, Semaphore } from "effect"
import type { HttpServerRequest } from "effect/http"
import { AppConfig } from "../../config/Config.ts"
import {
  largestBodiesMax,
  largestBodiesPerCallerMax,
  smallBodyBytesMax
} from "../../domain/Limits.ts"

/** A body without a length counts as the largest body divided by this: most bodies are small. */
const unknownLengthDivisor = 8

/**
 * Limits the memory of request bodies in this process: a large body waits, unread, until
 * there is capacity. While it is used, a body is in memory as bytes, as text and as
 * values. Each caller has only a part of the capacity, so that bodies that never arrive
 * delay only their own caller. ADR 0110.
 */
export class RequestBodyLimiter extends Context.Service<
  RequestBodyLimiter,
  {
    /** Runs an effect that reads and uses the body of a caller's request. */
    readonly within: (
      request: HttpServerRequest.HttpServerRequest,
      caller: string
    ) => <A, E, R>(use: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  }
>()("gateway/http/server/RequestBodyLimiter") {
  static readonly layer = Layer.effect(
    RequestBodyLimiter,
    Effect.gen(function* () {
      const { maxBodyBytes } = yield* AppConfig
      const capacity = yield* Semaphore.make(largestBodiesMax * maxBodyBytes)
      const withinCaller = makePerCaller(largestBodiesPerCallerMax * maxBodyBytes)
      return {
        within: ({ headers }, caller) => {
          const bytes = bytesOf(headers, maxBodyBytes)
          return bytes <= smallBodyBytesMax
            ? (use) => use
            : // The caller's part first: a body that waits for it takes no capacity from others
              (use) => withinCaller(caller, bytes, capacity.withPermits(bytes)(use))
        }
      }
    })
  )
}

/** A semaphore for each caller, while the caller has large bodies. */
const makePerCaller = (bytesMax: number) => {
  const callers = new Map<string, { readonly capacity: Semaphore.Semaphore; bodies: number }>()
  const enter = (caller: string) =>
    Effect.sync(() => {
      const entry = callers.get(caller) ?? { capacity: Semaphore.makeUnsafe(bytesMax), bodies: 0 }
      callers.set(caller, entry)
      entry.bodies += 1
      return entry
    })
  return <A, E, R>(caller: string, bytes: number, use: Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(
      enter(caller),
      ({ capacity }) => capacity.withPermits(bytes)(use),
      (entry) =>
        Effect.sync(() => {
          entry.bodies -= 1
          if (entry.bodies === 0) callers.delete(caller)
        })
    )
}

const bytesOf = (headers: Readonly<Record<string, string | undefined>>, max: number): number =>
  headers["transfer-encoding"] === undefined
    ? Math.min(Number(headers["content-length"] ?? 0), max)
    : Math.ceil(max / unknownLengthDivisor)
