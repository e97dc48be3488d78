import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Layer } from "effect"
import * as FirstStart from "./cli/FirstStart.ts"
import * as Logging from "./cli/Logging.ts"
import * as ModelCheck from "./cli/ModelCheck.ts"
import * as ReloadSignal from "./cli/ReloadSignal.ts"
import * as Shutdown from "./cli/Shutdown.ts"
import * as Telemetry from "./cli/Telemetry.ts"
import { AppConfig } from "./config/Config.ts"
import * as Gateway from "./Gateway.ts"

/** The layers of the process, in order. */
const main = Shutdown.layer.pipe(
  Layer.provide(Layer.mergeAll(FirstStart.layer, ModelCheck.layer, ReloadSignal.layer)),
  Layer.provide(Gateway.http),
  Layer.provide(Gateway.core),
  Layer.provide(Gateway.stores),
  Layer.provide(Gateway.adapters),
  Layer.provide(Gateway.database),
  Layer.provide(Telemetry.layer),
  Layer.provide(Logging.layer),
  Layer.provide(AppConfig.layer),
  Layer.provide(Gateway.platform)
)

NodeRuntime.runMain(Layer.launch(main), {
  disableErrorReporting: true,
  teardown: Logging.teardown
})
