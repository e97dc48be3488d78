import { Duration, Effect, Schema } from "effect"
import { dataUri } from "../MediaTexts.ts"
import type { MediumText } from "../MediaTexts.ts"
import { multipart } from "../Multipart.ts"
import { callVendor } from "../VendorCall.ts"
import type { VendorApi } from "../VendorCall.ts"

/** The vendor accepts data URIs only for small files. docs/reference/vendors.md#replicate-predictions */
const inlineBytesMax = 1024 * 1024

const uploadTimeout = Duration.seconds(120)

const Uploaded = Schema.Struct({ urls: Schema.Struct({ get: Schema.NonEmptyString }) })

/** A data URI or, for a larger medium, the URL of an uploaded file. */
export const inlineOrUpload =
  (api: VendorApi, base: string): MediumText =>
  (medium) =>
    medium.size <= inlineBytesMax
      ? dataUri(medium)
      : Effect.gen(function* () {
          const { mime, pointer } = medium
          const name = `${pointer.replaceAll(/[^a-z0-9]+/giu, "")}.${mime.split("/")[1] ?? "bin"}`
          const { urls } = yield* callVendor(api, {
            purpose: "query",
            method: "POST",
            url: `${base}/files`,
            raw: yield* multipart([["content", { name, mime, bytes: yield* medium.bytes }]]),
            timeout: uploadTimeout,
            schema: Uploaded
          })
          return urls.get
        })
