import { Option, Schema } from "effect"
import { readAs } from "../Faults.ts"
import type { FaultRule, Refusal } from "../Faults.ts"
import { maybe } from "../OptionalField.ts"
import type { VendorAnswer } from "../VendorHttp.ts"

/** vendors.md A5, fal: the `type` of the first item of `detail`, or the text of `detail`. */
export const rules: ReadonlyArray<FaultRule> = [
  { codes: ["content_policy_violation"], class: "CONTENT" },
  { codes: ["file_download_error", "image_load_error", "file_too_large"], class: "MEDIA" },
  { says: /exhausted balance|user is locked|billing/iu, class: "OPERATOR" },
  { codes: ["generation_timeout", "request_timeout", "startup_timeout"], class: "TIMEOUT" },
  { codes: ["internal_server_error", "runner_*", "downstream_service_*"], class: "RETRYABLE" },
  { status: 422, class: "FATAL_CLIENT" }
]

const Detail = Schema.Struct({
  msg: maybe(Schema.String),
  type: maybe(Schema.String)
})
const Failure = Schema.Struct({ detail: Schema.Union([Schema.String, Schema.Array(Detail)]) })
const read = readAs(Failure)

export const refusalOf = (answer: VendorAnswer): Refusal | undefined =>
  Option.getOrUndefined(
    Option.map(read(answer), ({ detail }) => ({
      requestId: answer.headers["x-fal-request-id"],
      ...(typeof detail === "string"
        ? { code: answer.headers["x-fal-error-type"], message: detail }
        : { code: detail[0]?.type, message: detail[0]?.msg })
    }))
  )
