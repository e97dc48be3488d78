import { NodeRuntime } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { appendFileSync } from "node:fs"
import { join } from "node:path"
import * as FirstStart from "../../src/cli/FirstStart.ts"
import * as Logging from "../../src/cli/Logging.ts"
import * as Shutdown from "../../src/cli/Shutdown.ts"
import { AppConfig } from "../../src/config/Config.ts"
import * as Gateway from "../../src/Gateway.ts"
import { make } from "../../src/sandbox/Simulator.ts"
import { VendorClient } from "../../src/vendors/VendorClient.ts"
import { WebhookSender } from "../../src/webhooks/WebhookSender.ts"

const die = Effect.andThen(
  Effect.sync(() => process.kill(process.pid, "SIGKILL")),
  Effect.never
)

/**
 * `WEBHOOK_CRASH=before-send:5` kills this process when the fifth delivery has been claimed and is about to be sent;
 * `after-response:5` kills it when the receiver has responded and nothing is recorded yet.
 */
const sender = Layer.effect(
  WebhookSender,
  Effect.map(WebhookSender, ({ send, fairShare }) => {
    const [point, n = "1"] = (process.env["WEBHOOK_CRASH"] ?? "").split(":")
    let requests = 0
    return WebhookSender.of({
      fairShare,
      send: (request) =>
        Effect.suspend(() => {
          requests += 1
          if (requests !== Number(n)) return send(request)
          if (point === "before-send") return die
          return point === "after-response" ? Effect.andThen(send(request), die) : send(request)
        })
    })
  })
).pipe(Layer.provide(Gateway.adapters))

/**
 * Like `src/main.ts`, but `[[sim:crash=…]]` kills this process, and each submit is appended to `submits.log` in
 * `DATA_DIR`.
 */
const vendors = Layer.effect(
  VendorClient,
  Effect.gen(function* () {
    const { dataDir, simulatorDelay } = yield* AppConfig
    const { account } = yield* make({
      delay: simulatorDelay,
      crash: die
    })
    const noted = {
      ...account,
      submit: (request: Parameters<typeof account.submit>[0]) =>
        Effect.suspend(() => {
          appendFileSync(join(dataDir, "submits.log"), `${request.taskId}\n`)
          return account.submit(request)
        })
    }
    return VendorClient.of({
      choose: () => Effect.succeed(noted),
      owner: () => Effect.succeed(noted),
      isServed: () => true,
      accountsFor: () => [],
      isSandbox: () => true
    })
  })
)

const main = Shutdown.layer.pipe(
  Layer.provide(FirstStart.layer),
  Layer.provide(Gateway.http),
  Layer.provide(Gateway.core),
  Layer.provide(Gateway.stores),
  Layer.provide(Layer.mergeAll(Gateway.adapters, vendors, sender)),
  Layer.provide(Gateway.database),
  Layer.provide(Logging.layer),
  Layer.provide(AppConfig.layer),
  Layer.provide(Gateway.platform)
)

NodeRuntime.runMain(Layer.launch(main), {
  disableErrorReporting: true,
  teardown: Logging.teardown
})
