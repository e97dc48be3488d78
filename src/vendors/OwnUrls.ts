import { Effect, Option, Schema } from "effect"
import { isSameOrigin } from "./Bases.ts"
import type { Handle } from "./VendorClient.ts"
import { VendorError } from "./VendorError.ts"

/** A URL that the vendor named is used, but the key goes to the account's own origin alone. */
export const ownUrl = (base: string, named: string | undefined, fallback: string): string =>
  named !== undefined && isSameOrigin(base, named) ? named : fallback

/** Reads a stored handle; the key goes to none of its URLs that is not of the account's own origin. */
export const ownJob = <S extends Schema.ConstraintDecoder<unknown>>(
  schema: S,
  urlsIn: (job: S["Type"]) => ReadonlyArray<string>
) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (base: string, handle: Handle): Effect.Effect<S["Type"], VendorError> =>
    Effect.mapError(
      Effect.fromOption(
        Option.filter(decode(handle), (job) => urlsIn(job).every((url) => isSameOrigin(base, url)))
      ),
      () => new VendorError({ class: "LOST", message: "The job's handle is not this account's" })
    )
}
