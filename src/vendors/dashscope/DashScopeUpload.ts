import { Duration, Effect, Schema } from "effect"
import { refused, unanswered } from "../Faults.ts"
import type { MediumText } from "../MediaTexts.ts"
import { multipart } from "../Multipart.ts"
import type { VendorHttp } from "../VendorHttp.ts"
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

const uploadTimeout = Duration.seconds(120)

const extensions: Readonly<Record<string, string>> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/bmp": "bmp",
  "image/webp": "webp",
  "audio/wav": "wav",
  "audio/mpeg": "mp3",
  "video/mp4": "mp4"
}

/**
 * Where the upstream takes URLs alone: the client's own, or the bytes in DashScope's temporary store,
 * which only this account's models can read (vendors.md A1, Upload for private media).
 */
export const urlOrUpload =
  (http: VendorHttp, calls: Calls, upstreamModel: string): MediumText =>
  (medium) =>
    medium.sourceUrl === undefined
      ? Effect.gen(function* () {
          const { data } = yield* calls({
            purpose: "ask",
            path: `/uploads?action=getPolicy&model=${encodeURIComponent(upstreamModel)}`,
            schema: Policy
          })
          const name = `${medium.pointer.replaceAll(/[^a-z0-9]+/giu, "")}.${extensions[medium.mime] ?? "bin"}`
          const key = `${data.upload_dir}/${name}`
          const form = yield* multipart([
            ["OSSAccessKeyId", data.oss_access_key_id],
            ["Signature", data.signature],
            ["policy", data.policy],
            ["key", key],
            ["x-oss-object-acl", data.x_oss_object_acl],
            ["x-oss-forbid-overwrite", data.x_oss_forbid_overwrite],
            ["success_action_status", "200"],
            ["file", { name, mime: medium.mime, bytes: yield* medium.bytes }]
          ])
          const answer = yield* http({
            method: "POST",
            url: data.upload_host,
            headers: { "content-type": form.contentType },
            body: form.body,
            timeout: uploadTimeout
          }).pipe(Effect.mapError((failure) => unanswered("ask", failure)))
          if (answer.status >= 300) return yield* refused([], "ask", answer, undefined)
          return `oss://${key}`
        })
      : Effect.succeed(medium.sourceUrl)
