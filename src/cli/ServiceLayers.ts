import { Layer } from "effect"
import { AppConfig } from "../config/Config.ts"
import * as Gateway from "../Gateway.ts"
import * as FirstStart from "./FirstStart.ts"
import * as Logging from "./Logging.ts"
import * as ModelCheck from "./ModelCheck.ts"
import * as Member from "./processes/Member.ts"
import * as ReloadSignal from "./ReloadSignal.ts"
import * as Shutdown from "./Shutdown.ts"
import * as Telemetry from "./Telemetry.ts"

/** The layers of the process, in order. */
const layers = Layer.merge(Shutdown.layer, Member.layerListening).pipe(
  Layer.provide(Layer.mergeAll(FirstStart.layer, ModelCheck.layer, ReloadSignal.layer)),
  Layer.provide(Gateway.http),
  Layer.provide(Gateway.core),
  Layer.provide(Gateway.stores),
  Layer.provide(Gateway.adapters),
  Layer.provide(Gateway.database),
  Layer.provide(Gateway.offered),
  Layer.provide(Telemetry.layer),
  Layer.provide(Logging.layer),
  Layer.provide(AppConfig.layer),
  Layer.provide(Member.layer),
  Layer.provide(Gateway.platform)
)

/** One process of the service, until it is stopped. */
export const oneProcess = Layer.launch(layers)
