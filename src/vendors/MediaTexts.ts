import { Effect } from "effect"
import type { SubmitMedium, SubmitRequest } from "./VendorClient.ts"
import type { VendorError } from "./VendorError.ts"

/** Writes one medium in the form that the upstream expects. */
export type MediumText = (medium: SubmitMedium) => Effect.Effect<string, VendorError>

export const dataUri: MediumText = (medium) =>
  Effect.map(medium.bytes, (bytes) => `data:${medium.mime};base64,${base64(bytes)}`)

/**
 * The client's https URL if there is one, else another form. The gateway has already fetched a medium with an http URL.
 */
export const publicUrlOr =
  (other: MediumText): MediumText =>
  (medium) =>
    medium.sourceUrl?.startsWith("https://") === true
      ? Effect.succeed(medium.sourceUrl)
      : other(medium)

/** The client's URL if there is one, else the bytes. */
export const urlOrDataUri: MediumText = (medium) =>
  medium.sourceUrl === undefined ? dataUri(medium) : Effect.succeed(medium.sourceUrl)

export const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64")

/** Returns the medium at a pointer of the body, such as `#/images/0`, in the form that the upstream expects. */
export type MediaAt = (pointer: string) => string | undefined

/** Writes all media of a request in the form that the upstream expects. */
export const mediaTexts = (
  { media }: SubmitRequest,
  text: MediumText
): Effect.Effect<MediaAt, VendorError> =>
  Effect.map(
    Effect.forEach(media, (medium) =>
      Effect.map(text(medium), (it) => [medium.pointer, it] as const)
    ),
    (texts) => {
      const byPointer = new Map(texts)
      return (pointer) => byPointer.get(pointer)
    }
  )

/** The items of a list field, such as `images`, in order. */
export const listOf = (at: MediaAt, field: string, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => at(`#/${field}/${index}`)).filter(
    (it) => it !== undefined
  )
