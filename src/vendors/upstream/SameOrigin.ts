import { Effect, Option, Schema } from "effect"
import { isSameOrigin } from "../BaseUrl.ts"
import type { Handle } from "../VendorClient.ts"
import { VendorError } from "../VendorError.ts"

/** The URL that the vendor named if it has the account's origin, because the key is sent to it; else `fallback`. */
export const sameOriginUrl = (base: string, named: string | undefined, fallback: string): string =>
  named !== undefined && isSameOrigin(base, named) ? named : fallback

/** Reads a stored handle; fails if one of its URLs has another origin than the account. */
export const sameOriginJob = <S extends Schema.ConstraintDecoder<unknown>>(
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
