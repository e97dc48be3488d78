import { Duration, Effect, Schema } from "effect"
import { extensionOf } from "../../catalog/media/Formats.ts"
import type { AdapterContext } from "../AdapterContext.ts"
import { isSameOrigin } from "../BaseUrl.ts"
import { responseError, noResponseError } from "../Faults.ts"
import type { MediumText } from "../MediaTexts.ts"
import { multipart } from "../Multipart.ts"
import { VendorError } from "../VendorError.ts"
import type { Calls } from "./DashScopeCalls.ts"

const Policy = Schema.Struct({
  data: Schema.Struct({
    upload_host: Schema.String,
    upload_dir: Schema.String,
    oss_access_key_id: Schema.String,
    signature: Schema.String,
    policy: Schema.String,
    x_oss_object_acl: Schema.String,
    x_oss_forbid_overwrite: Schema.String
  })
})

const noAddress = new VendorError({
  class: "FAILED",
  message: "The upstream returned no address for uploads"
})

const uploadTimeout = Duration.seconds(120)

/**
 * For media that the upstream accepts only as URLs: the client's URL, else an upload to DashScope's temporary store,
 * which only this account can read. The vendor's response names the store's host, so it is called through the egress
 * guard. docs/reference/vendors.md#dashscope-uploads
 */
export const urlOrUpload =
  (
    { account, http, toNamed }: Pick<AdapterContext, "account" | "http" | "toNamed">,
    calls: Calls,
    upstreamModel: string
  ): MediumText =>
  (medium) =>
    medium.sourceUrl === undefined
      ? Effect.gen(function* () {
          const { data } = yield* calls({
            purpose: "query",
            path: `/uploads?action=getPolicy&model=${encodeURIComponent(upstreamModel)}`,
            schema: Policy
          })
          const isOwn = isSameOrigin(account.baseUrl, data.upload_host)
          if (!isOwn && URL.parse(data.upload_host)?.protocol !== "https:") return yield* noAddress
          const name = `${medium.pointer.replaceAll(/[^a-z0-9]+/giu, "")}.${extensionOf(medium.mime)}`
          const key = `${data.upload_dir}/${name}`
          const form = yield* multipart([
            ["OSSAccessKeyId", data.oss_access_key_id],
            ["Signature", data.signature],
            ["policy", data.policy],
            ["key", key],
            ["x-oss-object-acl", data.x_oss_object_acl],
            ["x-oss-forbid-overwrite", data.x_oss_forbid_overwrite],
            ["success_action_status", "200"],
            ["x-oss-content-type", medium.mime],
            ["file", { name, mime: medium.mime, bytes: yield* medium.bytes }]
          ])
          const response = yield* (isOwn ? http : toNamed)({
            method: "POST",
            url: data.upload_host,
            headers: { "content-type": form.contentType },
            body: form.body,
            timeout: uploadTimeout
          }).pipe(Effect.mapError((failure) => noResponseError("query", failure)))
          if (response.status >= 300) return yield* responseError([], "query", response, undefined)
          return `oss://${key}`
        })
      : Effect.succeed(medium.sourceUrl)
