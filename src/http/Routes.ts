import { Layer } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "./Api.ts"
import * as ApiKeysHandlers from "./ApiKeysHandlers.ts"
import * as ArtifactRoutes from "./ArtifactRoutes.ts"
import * as CallbackRoutes from "./CallbackRoutes.ts"
import { BodyRoom } from "./BodyRoom.ts"
import * as CallsHandlers from "./CallsHandlers.ts"
import * as Edge from "./Edge.ts"
import { ManageGate, ManageProblems } from "./ManageGate.ts"
import * as Passthrough from "./Passthrough.ts"
import * as PassthroughDoor from "./PassthroughDoor.ts"
import * as ModelsHandlers from "./ModelsHandlers.ts"
import * as ManageMethods from "./ManageMethods.ts"
import * as Redaction from "./Redaction.ts"
import * as ServiceRoutes from "./ServiceRoutes.ts"
import * as TaskRoutes from "./TaskRoutes.ts"
import * as TasksHandlers from "./TasksHandlers.ts"
import * as UsersHandlers from "./UsersHandlers.ts"
import * as WalletHandlers from "./WalletHandlers.ts"
import * as WebhookDeliveriesHandlers from "./WebhookDeliveriesHandlers.ts"
import * as WebhookEndpointsHandlers from "./WebhookEndpointsHandlers.ts"

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
).pipe(Layer.provideMerge(Edge.layer), Layer.provide(BodyRoom.layer))

/**
 * The routes on a server, without the per-request logger that costs more than all the rest, and the
 * door in front of them.
 */
export const serve = PassthroughDoor.layer.pipe(
  Layer.provideMerge(HttpRouter.serve(layer, { disableLogger: true })),
  Layer.provide(Redaction.layer)
)
