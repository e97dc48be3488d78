import { Layer } from "effect"
import { AppConfig } from "../config/Config.ts"
import * as Gateway from "../Gateway.ts"
import * as FirstStart from "./FirstStart.ts"
import * as Logging from "./Logging.ts"
import * as ModelCheck from "./ModelCheck.ts"
import * as ReloadSignal from "./ReloadSignal.ts"
import * as Shutdown from "./Shutdown.ts"
import * as Telemetry from "./Telemetry.ts"

/** The layers of the process, in order. */
const layers = Shutdown.layer.pipe(
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

/** The service: what `src/main.ts` and `gateway serve` run until they are stopped. */
export const service = Layer.launch(layers)

/** The end of a process that runs it: a requested, orderly end is 0. ADR 0155. */
export { teardown } from "./Logging.ts"
