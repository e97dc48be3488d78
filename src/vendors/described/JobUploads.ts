import { Duration, Effect } from "effect"
import type { JobProtocol } from "../../catalog/jobs/JobProtocol.ts"
import { textAt } from "../../catalog/jobs/JsonPath.ts"
import { jsonIn, unreadableError } from "../Faults.ts"
import { dataUri } from "../MediaTexts.ts"
import type { MediumText } from "../MediaTexts.ts"
import { multipart } from "../Multipart.ts"
import { isOk } from "../VendorHttp.ts"
import { queryFailure } from "./JobFailures.ts"
import type { JobSend } from "./JobRequests.ts"
import { urlOf } from "./JobUrl.ts"

const timeout = Duration.seconds(120)

/** A data URI or, for a larger medium of a vendor with uploads, the URL of an uploaded file. */
export const inlineOrUpload = (protocol: JobProtocol, base: string, send: JobSend): MediumText => {
  const { uploads } = protocol.submit
  const url = uploads === undefined ? undefined : urlOf(base, uploads.path, {})
  if (uploads === undefined || url === undefined) return dataUri
  return (medium) => {
    if (medium.size <= uploads.above) return dataUri(medium)
    return Effect.gen(function* () {
      const { mime, pointer } = medium
      const name = `${pointer.replaceAll(/[^a-z0-9]+/giu, "")}.${mime.split("/")[1] ?? "bin"}`
      const raw = yield* multipart([[uploads.part, { name, mime, bytes: yield* medium.bytes }]])
      const response = yield* send({ purpose: "query", method: "POST", url, raw, timeout })
      if (!isOk(response)) return yield* queryFailure(protocol, response)
      const uploaded = textAt([uploads.at], jsonIn(response))
      return uploaded === undefined || uploaded === ""
        ? yield* unreadableError("query", response)
        : uploaded
    })
  }
}
