import { NodeRuntime } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { appendFileSync } from "node:fs"
import * as FirstStart from "../../src/cli/FirstStart.ts"
import * as Logging from "../../src/cli/Logging.ts"
import { AppConfig } from "../../src/Config.ts"
import * as Gateway from "../../src/Gateway.ts"
import { make } from "../../src/vendors/simulator/Simulator.ts"
import { VendorClient } from "../../src/vendors/VendorClient.ts"

/** As `src/main.ts`, but `[[sim:crash=…]]` kills this process, and each submit is noted in `SUBMIT_LOG`. */
const vendors = Layer.effect(
  VendorClient,
  Effect.gen(function* () {
    const { simulatorDelay } = yield* AppConfig
    const { account } = yield* make({
      delay: simulatorDelay,
      crash: Effect.andThen(
        Effect.sync(() => process.kill(process.pid, "SIGKILL")),
        Effect.never
      )
    })
    const noted = {
      ...account,
      submit: (request: Parameters<typeof account.submit>[0]) =>
        Effect.suspend(() => {
          appendFileSync(process.env["SUBMIT_LOG"] ?? "/dev/null", `${request.taskId}\n`)
          return account.submit(request)
        })
    }
    return VendorClient.of({
      choose: () => Effect.succeed(noted),
      owner: () => Effect.succeed(noted),
      isSandbox: () => true
    })
  })
)

const main = FirstStart.layer.pipe(
  Layer.provide(Gateway.http),
  Layer.provide(Gateway.core),
  Layer.provide(Gateway.stores),
  Layer.provide(Layer.mergeAll(Gateway.leaves, vendors)),
  Layer.provide(Gateway.database),
  Layer.provide(Logging.layer),
  Layer.provide(AppConfig.layer),
  Layer.provide(Gateway.platform)
)

NodeRuntime.runMain(Layer.launch(main), {
  disableErrorReporting: true,
  teardown: Logging.teardown
})
