import { Context } from "effect"
import type { Effect, Stream } from "effect"
import { createHash } from "node:crypto"
import type { Credits } from "../../domain/Credits.ts"
import type { OpenRoute } from "../OpenRoutes.ts"
import type { UpstreamCatalog } from "../UpstreamCatalog.ts"

/** Digits of the SHA-256 of a `custom_id`: 80 bits tell the requests of one batch apart. */
const digestDigits = 20

/** By which a request of a batch is known. */
export const digestOf = (customId: string): string =>
  createHash("sha256").update(customId).digest("hex").slice(0, digestDigits)

/** A request of an accepted batch. */
export interface BatchRequest {
  /** As it names it. */
  readonly model: string
  /** Of its body. */
  readonly bytes: number
  /** The most that it can cost. Absent: this version of the gateway would refuse it. */
  readonly hold: Credits | undefined
}

/** What the requests of a batch were priced by. */
export interface AcceptedBatch {
  readonly catalog: UpstreamCatalog
  /** The route of every request. */
  readonly route: OpenRoute
  readonly nowMillis: number
}

/**
 * Reads the requests of an accepted batch from its file again, by the digests of their names: nothing of the plan is
 * stored. ADR 0300
 */
export class BatchRequests extends Context.Service<
  BatchRequests,
  {
    readonly read: <E>(
      batch: AcceptedBatch,
      file: Stream.Stream<Uint8Array, E>
    ) => Effect.Effect<ReadonlyMap<string, BatchRequest>, E>
  }
>()("gateway/catalog/BatchRequests") {}
