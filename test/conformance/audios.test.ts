import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { WebhookSenderLog } from "../../src/webhooks/WebhookSender.ts"
import { advance, eventually, layerGateway, makeUser } from "../support/gateway.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

/** A catalog with a model that makes audio. */
const catalogFile = join(temporaryFolder("audios"), "catalog.json")
writeFileSync(
  catalogFile,
  JSON.stringify({ change: { "text-to-image-max": { result: "audios" } } })
)

const sound = { _tag: "Bytes" as const, bytes: new Uint8Array([1, 2, 3]), mime: "audio/mpeg" }
const vendor = {
  submit: () =>
    Effect.succeed({ _tag: "Accepted" as const, handle: {}, pollAfter: Duration.seconds(1) }),
  poll: () => Effect.succeed({ _tag: "Done" as const, result: { items: [sound] } })
}

describe("a model whose results are audios", () => {
  it.effect("returns them as the audios array, from GET and in task.succeeded", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const hook = { url: "https://127.0.0.1/hook", events: ["task.succeeded"] }
      yield* user.call("POST", "/manage/v1/webhook-endpoints", hook)
      const created = yield* user.call("POST", path, { prompt: "A lighthouse" })
      yield* advance("2 seconds")
      const ended = yield* eventually(
        user.call("GET", `${path}/${created.json.task_info.id}`),
        ({ json }) => json.task_info.status === "completed"
      )
      assert.hasAllKeys(ended.json, ["task_info", "audios"])
      assert.lengthOf(ended.json.audios, 1)
      assert.match(ended.json.audios[0], /^http:\/\/gateway\.test\/artifacts\/art_/u)
      const [sent] = yield* eventually((yield* WebhookSenderLog).sent, (all) => all.length > 0)
      const event = JSON.parse(new TextDecoder().decode(sent!.request.body))
      assert.deepStrictEqual(event.data.payload, ended.json)
    }).pipe(Effect.provide(layerGateway({ vendor, env: { CATALOG_FILE: catalogFile } })))
  )
})
