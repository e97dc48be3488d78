import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Option } from "effect"
import { ArtifactBlobs } from "./artifacts/ArtifactBlobs.ts"
import { ArtifactIndexStore } from "./artifacts/ArtifactIndexStore.ts"
import { Artifacts } from "./artifacts/Artifacts.ts"
import { Files } from "./artifacts/files/Files.ts"
import { FileStore } from "./artifacts/files/FileStore.ts"
import { logged } from "./artifacts/LoggedBlobs.ts"
import * as S3Blobs from "./artifacts/S3Blobs.ts"
import { Catalog } from "./catalog/Catalog.ts"
import { AppConfig } from "./config/Config.ts"
import * as Database from "./db/Database.ts"
import * as Migrations from "./db/Migrations.ts"
import { ofProcess } from "./domain/limits/ShareLimits.ts"
import { EgressGuard } from "./egress/EgressGuard.ts"
import { MediaFetch } from "./egress/MediaFetch.ts"
import * as Routes from "./http/Routes.ts"
import { Listener, listenerBounds } from "./http/server/listener/Listener.ts"
import { AccountAffinity } from "./passthrough/AccountAffinity.ts"
import { AffinityStore } from "./passthrough/AffinityStore.ts"
import * as BatchRequestsLive from "./passthrough/batches/BatchRequestsLive.ts"
import { CallStore } from "./passthrough/CallStore.ts"
import { Metering } from "./passthrough/Metering.ts"
import { Passthrough } from "./passthrough/Passthrough.ts"
import { ReservationStore } from "./passthrough/reservations/ReservationStore.ts"
import { UpstreamCalls } from "./passthrough/UpstreamCalls.ts"
import { AccountControl } from "./process/accounts/AccountControl.ts"
import { AccountKeys } from "./process/accounts/AccountKeys.ts"
import { AuditLog } from "./process/audit/AuditLog.ts"
import { AuditStore } from "./process/audit/AuditStore.ts"
import { CatalogVersions } from "./process/catalogs/CatalogVersions.ts"
import { Drain } from "./process/Drain.ts"
import { Process } from "./process/heartbeat/Process.ts"
import { ProcessStore } from "./process/heartbeat/ProcessStore.ts"
import * as OpenResponses from "./process/OpenResponses.ts"
import { LogRetention } from "./process/retention/LogRetention.ts"
import { PartitionStore } from "./process/retention/PartitionStore.ts"
import * as Retention from "./process/retention/Retention.ts"
import { Secrets } from "./process/secrets/Secrets.ts"
import * as SharedDatabase from "./process/SharedDatabase.ts"
import { make as makeSimulator } from "./sandbox/Simulator.ts"
import { TaskBatches } from "./tasks/batches/TaskBatches.ts"
import { TaskBatchStore } from "./tasks/batches/TaskBatchStore.ts"
import { Bills } from "./tasks/bills/Bills.ts"
import { CallbackKeys } from "./tasks/callbacks/CallbackKeys.ts"
import { Callbacks } from "./tasks/callbacks/Callbacks.ts"
import { CallbackStore } from "./tasks/callbacks/CallbackStore.ts"
import { TaskCompletion } from "./tasks/completion/TaskCompletion.ts"
import { TaskOutput } from "./tasks/completion/TaskOutput.ts"
import { TaskResults } from "./tasks/completion/TaskResults.ts"
import { Offers } from "./tasks/creation/Offers.ts"
import { Router } from "./tasks/creation/Router.ts"
import { TaskCreation } from "./tasks/creation/TaskCreation.ts"
import { Lookup } from "./tasks/history/Lookup.ts"
import { LookupStore } from "./tasks/history/LookupStore.ts"
import { Queues } from "./tasks/history/Queues.ts"
import { QueueStore } from "./tasks/history/QueueStore.ts"
import { TaskHistory } from "./tasks/history/TaskHistory.ts"
import { TaskHistoryStore } from "./tasks/history/TaskHistoryStore.ts"
import * as PrivacyLayers from "./tasks/privacy/PrivacyLayers.ts"
import { retentionJobs } from "./tasks/privacy/RetentionJobs.ts"
import { UserErasure } from "./tasks/privacy/UserErasure.ts"
import { Responses } from "./tasks/responses/Responses.ts"
import * as OwnershipReconciler from "./tasks/running/OwnershipReconciler.ts"
import { Rescuer } from "./tasks/running/Rescuer.ts"
import { RunningTasks } from "./tasks/running/RunningTasks.ts"
import { TaskMedia } from "./tasks/running/TaskMedia.ts"
import { TaskRunner } from "./tasks/running/TaskRunner.ts"
import * as TaskScheduler from "./tasks/running/TaskScheduler.ts"
import * as WorkNotifierLive from "./tasks/running/WorkNotifierLive.ts"
import { ConcurrencyLimiter } from "./tasks/submission/ConcurrencyLimiter.ts"
import { ConcurrencySlotStore } from "./tasks/submission/ConcurrencySlotStore.ts"
import { OperatorFaults } from "./tasks/submission/OperatorFaults.ts"
import { PaidSubmit } from "./tasks/submission/PaidSubmit.ts"
import { PollPacing } from "./tasks/submission/PollPacing.ts"
import { PollPacingStore } from "./tasks/submission/PollPacingStore.ts"
import { Reconcile } from "./tasks/submission/Reconcile.ts"
import { VendorAttemptStore } from "./tasks/submission/VendorAttemptStore.ts"
import { VendorFaultStore } from "./tasks/submission/VendorFaultStore.ts"
import { VendorWork } from "./tasks/submission/VendorWork.ts"
import { TaskChanges } from "./tasks/TaskChanges.ts"
import * as TaskStore from "./tasks/TaskStoreLive.ts"
import { TaskWatch } from "./tasks/TaskWatch.ts"
import { BatchOutput } from "./tasks/vendorbatches/BatchOutput.ts"
import { VendorBatches } from "./tasks/vendorbatches/VendorBatches.ts"
import { VendorBatchStore } from "./tasks/vendorbatches/VendorBatchStore.ts"
import { Videos } from "./tasks/videos/Videos.ts"
import { VideoStore } from "./tasks/videos/VideoStore.ts"
import { CallContents } from "./users/contents/CallContents.ts"
import { CallContentStore } from "./users/contents/CallContentStore.ts"
import * as UserLayers from "./users/Layers.ts"
import { ManageReplays } from "./users/ManageReplays.ts"
import { Accounts } from "./vendors/accounts/Accounts.ts"
import * as LiveVendors from "./vendors/LiveVendors.ts"
import { GuardedConnector, NamedHosts } from "./vendors/NamedHosts.ts"
import { Upstream } from "./vendors/upstream/Upstream.ts"
import { UsageReport } from "./wallet/UsageReport.ts"
import { Wallet } from "./wallet/Wallet.ts"
import * as WalletAudit from "./wallet/WalletAudit.ts"
import { WalletStore } from "./wallet/WalletStore.ts"
import { Deliveries } from "./webhooks/Deliveries.ts"
import { DeliveryLogStore } from "./webhooks/DeliveryLogStore.ts"
import { DeliveryScheduler } from "./webhooks/DeliveryScheduler.ts"
import * as DeliveryStore from "./webhooks/DeliveryStoreLive.ts"
import { Endpoints } from "./webhooks/Endpoints.ts"
import { EndpointStore } from "./webhooks/EndpointStore.ts"
import { EventLog } from "./webhooks/EventLog.ts"
import { EventLogStore } from "./webhooks/EventLogStore.ts"
import * as ExpiringKeys from "./webhooks/ExpiringKeys.ts"
import { ExpiringKeyStore } from "./webhooks/ExpiringKeyStore.ts"
import * as FailingEndpoints from "./webhooks/FailingEndpoints.ts"
import { SignatureDebug } from "./webhooks/SignatureDebug.ts"
import { WebhookDispatcher } from "./webhooks/WebhookDispatcher.ts"
import { WebhookSecrets } from "./webhooks/WebhookSecrets.ts"
import { WebhookSecretStore } from "./webhooks/WebhookSecretStore.ts"
import { WebhookSender } from "./webhooks/WebhookSender.ts"
import * as WithheldAlerts from "./webhooks/WithheldAlerts.ts"

/** The configured database, migrated. */
export const database = Layer.unwrap(
  Effect.map(AppConfig, ({ dataDir, database: options }) => {
    if (options._tag === "Embedded") {
      const embedded = Database.layerEmbedded({ dataDir, durable: options.durable })
      return Migrations.layer().pipe(Layer.provideMerge(embedded))
    }
    return SharedDatabase.layer(options)
  })
)

/** The stores of all nouns. */
export const stores = Layer.mergeAll(
  AuditStore.layer,
  UserLayers.stores,
  TaskHistoryStore.layer,
  PrivacyLayers.stores,
  VideoStore.layer,
  FileStore.layer,
  VendorBatchStore.layer,
  TaskBatchStore.layer,
  QueueStore.layer,
  LookupStore.layer,
  TaskStore.layer,
  DeliveryStore.layer,
  DeliveryLogStore.layer,
  ArtifactIndexStore.layer,
  CallbackStore.layer,
  ReservationStore.layer,
  AffinityStore.layer,
  CallStore.layer,
  CallContentStore.layer,
  VendorAttemptStore.layer,
  PollPacingStore.layer,
  EndpointStore.layer,
  ExpiringKeyStore.layer,
  WebhookSecretStore.layer,
  EventLogStore.layer,
  PartitionStore.layer,
  ProcessStore.layer,
  ConcurrencySlotStore.layer,
  VendorFaultStore.layer,
  WalletStore.layer
)

const namedHosts = Layer.effect(
  NamedHosts,
  Effect.flatMap(EgressGuard, (guard) => guard.dispatcher())
)

/** Connects to vendors whose base a catalog file names. */
export const guardedConnector = Layer.effect(
  GuardedConnector,
  Effect.map(EgressGuard, ({ connector }) => connector)
)

/** The built-in catalog, or as changed by `CATALOG_FILE`. */
const catalog = Layer.unwrap(
  Effect.map(AppConfig, ({ catalogFile }) =>
    Option.match(catalogFile, { onNone: () => Catalog.layer, onSome: Catalog.layerFile })
  )
)

/** The catalog and the vendor accounts. A start reads them before it opens a store, which a fault must not create. */
export const offered = Accounts.layerConfigured.pipe(Layer.provideMerge(catalog))

/** Everything that calls other systems or reads files. */
export const adapters = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* AppConfig
    return Layer.mergeAll(
      WebhookSender.layer({ serviceName: config.serviceName }),
      MediaFetch.layer({ serviceName: config.serviceName, processes: config.processes }),
      logged(
        config.artifactStore._tag === "Directory"
          ? ArtifactBlobs.layerDirectory(config.artifactStore.directory)
          : S3Blobs.layer(config.artifactStore)
      ),
      Upstream.layer({ timeout: config.upstreamTimeout }).pipe(Layer.provide(guardedConnector)),
      LiveVendors.layer({
        simulator: makeSimulator({ delay: config.simulatorDelay }),
        mayDisableInspection: config.dashScopeInspectionOptOut
      }).pipe(Layer.provide([namedHosts, guardedConnector]), Layer.provideMerge(offered))
    ).pipe(Layer.provideMerge(EgressGuard.layer({ allow: config.egressAllow })))
  })
)

/** What a process is: its id and heartbeat, its end, its secrets. */
export const process = Layer.mergeAll(Drain.layer, Process.layer, OpenResponses.layer).pipe(
  Layer.provideMerge(Secrets.layer)
)

/** The services that HTTP routes and actors call. */
export const services = Layer.mergeAll(
  Passthrough.layer,
  LogRetention.layer,
  SignatureDebug.layer,
  Router.layer,
  Rescuer.layer,
  TaskHistory.layer,
  Bills.layer,
  PrivacyLayers.services,
  Queues.layer,
  Lookup.layer,
  TaskRunner.layer,
  Layer.mergeAll(Videos.layer, Responses.layer, TaskBatches.layer, VendorBatches.layer).pipe(
    Layer.provideMerge(Layer.merge(Router.layer, TaskResults.layer))
  )
).pipe(
  Layer.provideMerge(TaskWatch.layer),
  Layer.provideMerge(Layer.mergeAll(Deliveries.layer, DeliveryScheduler.layer)),
  Layer.provideMerge(Layer.mergeAll(Endpoints.layer, EventLog.layer, WebhookSecrets.layer)),
  Layer.provideMerge(RunningTasks.layer),
  Layer.provideMerge(
    Layer.mergeAll(
      Metering.layer,
      UpstreamCalls.layer.pipe(Layer.provide(AccountAffinity.layer)),
      Offers.layer,
      TaskCreation.layer,
      TaskOutput.layer,
      BatchOutput.layer.pipe(Layer.provide(BatchRequestsLive.layer)),
      TaskCompletion.layer,
      VendorWork.layer.pipe(
        Layer.provide([PaidSubmit.layer, Reconcile.layer, TaskMedia.layer]),
        Layer.provide(PollPacing.layer),
        Layer.provide(TaskOutput.layer)
      )
    )
  ),
  Layer.provideMerge(
    Layer.mergeAll(
      ConcurrencyLimiter.layer,
      Callbacks.layer.pipe(Layer.provide(CallbackKeys.layer))
    )
  ),
  Layer.provideMerge(
    Layer.mergeAll(
      AccountControl.layer,
      AuditLog.layer,
      UserLayers.services,
      Artifacts.layer,
      Files.layer,
      OperatorFaults.layer,
      CatalogVersions.layer,
      TaskChanges.layer,
      CallContents.layer,
      UsageReport.layer,
      Wallet.layer
    )
  ),
  Layer.provideMerge(AccountKeys.layer)
)

/** The background loops; the actors of endpoints are opened by `EndpointActors`. */
export const actors = Layer.mergeAll(
  TaskScheduler.layer,
  Retention.layer(retentionJobs),
  Artifacts.layerLoop,
  Rescuer.layerLoop,
  DeliveryScheduler.layerLoop,
  OwnershipReconciler.layer,
  ManageReplays.layerLoop,
  WalletAudit.layer,
  WithheldAlerts.layer,
  FailingEndpoints.layer,
  ExpiringKeys.layer,
  UserErasure.layerLoop
)

/** Everything except adapters and HTTP server; a test composes it with other adapters. */
export const core = actors.pipe(
  Layer.provideMerge(services),
  Layer.provideMerge(WorkNotifierLive.layer),
  Layer.provideMerge(WebhookDispatcher.layer),
  Layer.provideMerge(process)
)

/** The HTTP server on `HOST` and `PORT`. */
export const server = Layer.unwrap(
  Effect.map(AppConfig, ({ host, port, processes }) => {
    const connectionsMax = ofProcess(listenerBounds.connectionsMax, processes)
    return Listener.listen({ host, port }, { ...listenerBounds, connectionsMax })
  })
)

export const http = Routes.serve.pipe(Layer.provideMerge(server))

export const platform = NodeServices.layer
