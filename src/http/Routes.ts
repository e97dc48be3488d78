import { Effect, Layer } from "effect"
import { Headers, HttpRouter, UrlParams } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../contract/Api.ts"
import { Drain } from "../process/Drain.ts"
import * as MessageBatchRoutes from "./anthropic/MessageBatchRoutes.ts"
import * as ConsoleRoutes from "./console/ConsoleRoutes.ts"
import * as CatalogHandlers from "./manage/catalog/CatalogHandlers.ts"
import * as ModelsHandlers from "./manage/catalog/ModelsHandlers.ts"
import * as ManageGate from "./manage/ManageGate.ts"
import * as AccountsHandlers from "./manage/operator/AccountsHandlers.ts"
import * as AuditHandlers from "./manage/operator/AuditHandlers.ts"
import * as BillsHandlers from "./manage/operator/BillsHandlers.ts"
import * as OperatorHandlers from "./manage/operator/OperatorHandlers.ts"
import * as QueuesHandlers from "./manage/operator/QueuesHandlers.ts"
import * as CallsHandlers from "./manage/tasks/CallsHandlers.ts"
import * as EventsHandlers from "./manage/tasks/EventsHandlers.ts"
import * as TasksHandlers from "./manage/tasks/TasksHandlers.ts"
import * as ApiKeysHandlers from "./manage/users/ApiKeysHandlers.ts"
import * as OidcRoutes from "./manage/users/OidcRoutes.ts"
import * as PrivacyHandlers from "./manage/users/PrivacyHandlers.ts"
import * as SessionsHandlers from "./manage/users/SessionsHandlers.ts"
import * as SignInGate from "./manage/users/SignInGate.ts"
import * as SignInHandlers from "./manage/users/SignInHandlers.ts"
import * as UsersHandlers from "./manage/users/UsersHandlers.ts"
import * as UsageHandlers from "./manage/wallet/UsageHandlers.ts"
import * as WalletHandlers from "./manage/wallet/WalletHandlers.ts"
import * as WebhookDeliveriesHandlers from "./manage/webhooks/WebhookDeliveriesHandlers.ts"
import * as WebhookEndpointsHandlers from "./manage/webhooks/WebhookEndpointsHandlers.ts"
import * as WebhookSecretHandlers from "./manage/webhooks/WebhookSecretHandlers.ts"
import * as McpRoutes from "./mcp/McpRoutes.ts"
import * as ResourceMetadata from "./mcp/ResourceMetadata.ts"
import * as BatchRoutes from "./openai/BatchRoutes.ts"
import * as FileRoutes from "./openai/FileRoutes.ts"
import * as ImageRoutes from "./openai/ImageRoutes.ts"
import * as ResponseRoutes from "./openai/ResponseRoutes.ts"
import * as VideoRoutes from "./openai/VideoRoutes.ts"
import * as CallListener from "./passthrough/CallListener.ts"
import * as Passthrough from "./passthrough/PassthroughRoutes.ts"
import * as AllowedMethods from "./server/AllowedMethods.ts"
import { RequestBodyLimiter } from "./server/bodies/RequestBodyLimiter.ts"
import * as GlobalMiddleware from "./server/GlobalMiddleware.ts"
import { exactPaths } from "./server/Paths.ts"
import * as ServiceRoutes from "./server/service/ServiceRoutes.ts"
import * as ArtifactRoutes from "./tasks/ArtifactRoutes.ts"
import * as CallbackRoutes from "./tasks/CallbackRoutes.ts"
import * as TaskBatchRoutes from "./tasks/TaskBatchRoutes.ts"
import * as TaskRoutes from "./tasks/TaskRoutes.ts"

const manage = HttpApiBuilder.layer(Api).pipe(
  Layer.provide([
    UsersHandlers.layer,
    ApiKeysHandlers.layer,
    AuditHandlers.layer,
    PrivacyHandlers.layer,
    OperatorHandlers.layer,
    QueuesHandlers.layer,
    CallsHandlers.layer,
    UsageHandlers.layer,
    BillsHandlers.layer,
    WalletHandlers.layer,
    TasksHandlers.layer,
    ModelsHandlers.layer,
    CatalogHandlers.layer,
    AccountsHandlers.layer,
    WebhookEndpointsHandlers.layer,
    WebhookSecretHandlers.layer,
    WebhookDeliveriesHandlers.layer,
    SessionsHandlers.layer,
    EventsHandlers.layer,
    SignInHandlers.layer
  ]),
  Layer.provide([ManageGate.layer, SignInGate.layer, ManageGate.problemsLayer])
)

/** All routes of the service. */
const layer = Layer.mergeAll(
  TaskRoutes.layer,
  ImageRoutes.layer,
  VideoRoutes.layer,
  TaskBatchRoutes.layer,
  ResponseRoutes.layer,
  FileRoutes.layer,
  BatchRoutes.layer,
  MessageBatchRoutes.layer,
  McpRoutes.layer,
  ResourceMetadata.layer,
  Passthrough.layer,
  ArtifactRoutes.layer,
  CallbackRoutes.layer,
  ServiceRoutes.layer,
  ConsoleRoutes.layer,
  OidcRoutes.layer,
  manage
).pipe(
  Layer.provide(AllowedMethods.layer),
  Layer.provideMerge(GlobalMiddleware.layer),
  Layer.provide(RequestBodyLimiter.layer)
)

/**
 * Names of headers and query parameters whose values never appear in traces or logs: every place where the vendors'
 * clients put their key (ADR 0074), the signature of an artifact link, and the token of a callback URL.
 */
const redaction = Layer.mergeAll(
  Layer.succeed(Headers.CurrentRedactedNames, [
    ...Headers.CurrentRedactedNames.defaultValue(),
    "proxy-authorization",
    "x-goog-api-key",
    "api-key"
  ]),
  Layer.succeed(UrlParams.CurrentRedactedNames, [
    ...UrlParams.CurrentRedactedNames.defaultValue(),
    "key",
    "api_key",
    "access_token",
    "signature",
    "token"
  ])
)

/** The routes without a server, for tests. */
export const toHttpEffect = Effect.provideService(
  HttpRouter.toHttpEffect(layer),
  HttpRouter.RouterConfig,
  exactPaths
)

/**
 * Serves the routes and the listener for passthrough calls, which comes first and is closed after the server. Omits
 * Effect's request logger, which costs more than the rest of a request.
 */
export const serve = Drain.layerAtEnd.pipe(
  Layer.provideMerge(HttpRouter.serve(layer, { disableLogger: true, routerConfig: exactPaths })),
  Layer.provideMerge(CallListener.layer),
  Layer.provide(RequestBodyLimiter.layer),
  Layer.provide(redaction)
)
