import { Layer } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "./manage/Api.ts"
import * as ApiKeysHandlers from "./manage/ApiKeysHandlers.ts"
import * as CallsHandlers from "./manage/CallsHandlers.ts"
import { ManageGate, ManageProblems } from "./manage/ManageGate.ts"
import * as ManageMethods from "./manage/ManageMethods.ts"
import * as ModelsHandlers from "./manage/ModelsHandlers.ts"
import * as TasksHandlers from "./manage/TasksHandlers.ts"
import * as UsersHandlers from "./manage/UsersHandlers.ts"
import * as WalletHandlers from "./manage/WalletHandlers.ts"
import * as WebhookDeliveriesHandlers from "./manage/WebhookDeliveriesHandlers.ts"
import * as WebhookEndpointsHandlers from "./manage/WebhookEndpointsHandlers.ts"
import * as FastPath from "./passthrough/FastPath.ts"
import * as Passthrough from "./passthrough/PassthroughRoutes.ts"
import * as Edge from "./server/Edge.ts"
import * as Redaction from "./server/Redaction.ts"
import { RequestBodyLimiter } from "./server/RequestBodyLimiter.ts"
import * as ServiceRoutes from "./server/ServiceRoutes.ts"
import * as ArtifactRoutes from "./tasks/ArtifactRoutes.ts"
import * as CallbackRoutes from "./tasks/CallbackRoutes.ts"
import * as TaskRoutes from "./tasks/TaskRoutes.ts"

const manage = HttpApiBuilder.layer(Api).pipe(
  Layer.provide([
    UsersHandlers.layer,
    ApiKeysHandlers.layer,
    CallsHandlers.layer,
    WalletHandlers.layer,
    TasksHandlers.layer,
    ModelsHandlers.layer,
    WebhookEndpointsHandlers.layer,
    WebhookDeliveriesHandlers.layer
  ]),
  Layer.provide([ManageGate.layer, ManageProblems.layer])
)

/** Everything that the service answers. */
export const layer = Layer.mergeAll(
  TaskRoutes.layer,
  Passthrough.layer,
  ArtifactRoutes.layer,
  CallbackRoutes.layer,
  ServiceRoutes.layer,
  ManageMethods.layer,
  manage
).pipe(Layer.provideMerge(Edge.layer), Layer.provide(RequestBodyLimiter.layer))

/**
 * The routes on a server, without the per-request logger that costs more than all the rest, and the
 * door in front of them.
 */
export const serve = FastPath.layer.pipe(
  Layer.provideMerge(HttpRouter.serve(layer, { disableLogger: true })),
  Layer.provide(Redaction.layer)
)
