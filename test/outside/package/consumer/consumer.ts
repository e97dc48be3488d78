import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { AppConfig, Gateway } from "generation-gateway"
import { layerTest, MockVendor, startTestGateway, TestGateway } from "generation-gateway/testing"
import type { StartedTestGateway } from "generation-gateway/testing"
/** A consumer's program, compiled and run in a folder that contains only the package. */
import assert from "node:assert/strict"
import { makeHandlers } from "./handlers.ts"
import { orderPoster } from "./poster.ts"

/** The layers fit together. */
export const service = Gateway.http.pipe(
  Layer.provide(Gateway.core),
  Layer.provide(Gateway.stores),
  Layer.provide(Gateway.adapters),
  Layer.provide(Gateway.database),
  Layer.provide(AppConfig.layer),
  Layer.provide(Gateway.platform)
)
const checked: Layer.Layer<never, unknown, never> = service
assert.ok(checked)

const poster = Effect.gen(function* () {
  const gateway = yield* TestGateway
  return yield* gateway.whileTimePasses(orderPoster(gateway, "A lighthouse"))
})
const layers = layerTest({ vendor: [MockVendor.result("2 minutes")] }).pipe(
  Layer.provideMerge(TestClock.layer({ warningDelay: "1 day" }))
)
assert.match(await Effect.runPromise(Effect.provide(poster, layers)), /\/artifacts\//u)

let secret = ""
let receive: (request: Request) => Promise<Response> = () => Promise.resolve(new Response())
const gateway: StartedTestGateway = await startTestGateway({
  vendor: { "text-to-image-max": [MockVendor.result("1 minute")] },
  receiver: (request) => receive(request)
})
const { orderPicture, receiveWebhook, showPicture } = makeHandlers({
  fetch: gateway.fetch,
  gatewayUrl: gateway.baseUrl,
  apiKey: gateway.key,
  webhookSecret: () => secret
})
receive = receiveWebhook
secret = (await gateway.webhooks.listen()).secret
const ordered = await orderPicture(
  new Request("https://app.test/pictures", { method: "POST", body: '{"prompt":"A lighthouse"}' })
)
const { id } = (await ordered.json()) as { id: string }
await gateway.webhooks.received("task.succeeded", { taskId: id })
const shown = await showPicture(new Request(`https://app.test/pictures?id=${id}`)).text()
assert.match(shown, /"ready"/u)
await gateway.close()

// @ts-expect-error -- no such option
export const wrong = () => startTestGateway({ vendors: [] })

console.log("all examples ran")
process.exit(0)
