import { Context, Effect, Layer, Semaphore } from "effect"
import type { HttpServerRequest } from "effect/http"
import { AppConfig } from "../../config/Config.ts"
import {
  largestBodiesMax,
  largestBodiesPerCallerMax,
  smallBodyBytesMax
} from "../../domain/Limits.ts"

/** A body without a length counts as this part of the largest: most are small. */
const unknownPart = 8

/**
 * Bounds the memory that request bodies take in this process: large ones wait, unread, until there
 * is room for them. While a body is used it is there as bytes, as text and as values. One caller has a
 * part of the room, so that bodies that never come hold up their own only. ADR 0110.
 */
export class RequestBodyLimiter extends Context.Service<
  RequestBodyLimiter,
  {
    /** Runs what reads the body of a caller's request and uses it. */
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
      const room = yield* Semaphore.make(largestBodiesMax * maxBodyBytes)
      const ofCaller = makeParts(largestBodiesPerCallerMax * maxBodyBytes)
      return {
        within: ({ headers }, caller) => {
          const bytes = bytesOf(headers, maxBodyBytes)
          return bytes <= smallBodyBytesMax
            ? (use) => use
            : // Its own part first: what waits for that takes nothing from others
              (use) => ofCaller(caller, bytes, room.withPermits(bytes)(use))
        }
      }
    })
  )
}

/** A semaphore for each caller who has a large body under way. */
const makeParts = (bytesMax: number) => {
  const parts = new Map<string, { readonly part: Semaphore.Semaphore; bodies: number }>()
  const enter = (caller: string) =>
    Effect.sync(() => {
      const known = parts.get(caller) ?? { part: Semaphore.makeUnsafe(bytesMax), bodies: 0 }
      parts.set(caller, known)
      known.bodies += 1
      return known
    })
  return <A, E, R>(caller: string, bytes: number, use: Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(
      enter(caller),
      ({ part }) => part.withPermits(bytes)(use),
      (entered) =>
        Effect.sync(() => {
          entered.bodies -= 1
          if (entered.bodies === 0) parts.delete(caller)
        })
    )
}

const bytesOf = (headers: Readonly<Record<string, string | undefined>>, max: number): number =>
  headers["transfer-encoding"] === undefined
    ? Math.min(Number(headers["content-length"] ?? 0), max)
    : Math.ceil(max / unknownPart)
