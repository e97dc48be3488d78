import { Context, Effect, Layer, Semaphore } from "effect"
import type { HttpServerRequest } from "effect/http"
import { AppConfig } from "../Config.ts"
import { largestBodiesAtOnce, smallBodyBytesMax } from "../domain/Limits.ts"

/** A body without a length counts as this part of the largest: most are small. */
const unknownPart = 8

/**
 * Bounds the memory that request bodies take in this process: large ones wait, unread, until there
 * is room for them. While a body is used it is there as bytes, as text and as values. ADR 0110.
 */
export class BodyRoom extends Context.Service<
  BodyRoom,
  {
    /** Runs what reads the request's body and uses it. */
    readonly within: (
      request: HttpServerRequest.HttpServerRequest
    ) => <A, E, R>(use: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  }
>()("gateway/http/BodyRoom") {
  static readonly layer = Layer.effect(
    BodyRoom,
    Effect.gen(function* () {
      const { maxBodyBytes } = yield* AppConfig
      const room = yield* Semaphore.make(largestBodiesAtOnce * maxBodyBytes)
      return {
        within: ({ headers }) => {
          const bytes = bytesOf(headers, maxBodyBytes)
          return bytes <= smallBodyBytesMax ? (use) => use : room.withPermits(bytes)
        }
      }
    })
  )
}

const bytesOf = (headers: Readonly<Record<string, string | undefined>>, max: number): number =>
  headers["transfer-encoding"] === undefined
    ? Math.min(Number(headers["content-length"] ?? 0), max)
    : Math.ceil(max / unknownPart)
