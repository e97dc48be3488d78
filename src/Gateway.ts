import { NodeHttpServer, NodeServices } from "@effect/platform-node"
import { Duration, Effect, FileSystem, Layer, Option } from "effect"
import * as AlarmClock from "./actors/AlarmClock.ts"
import * as Audit from "./actors/Audit.ts"
import * as Cluster from "./actors/Cluster.ts"
import * as EndpointActor from "./actors/EndpointActor.ts"
import * as Retention from "./actors/Retention.ts"
import * as Sweeper from "./actors/Sweeper.ts"
import * as TaskActor from "./actors/TaskActor.ts"
import * as Wakes from "./actors/Wakes.ts"
import * as WalletAudit from "./actors/WalletAudit.ts"
import { AppConfig, ConfigFault } from "./Config.ts"
import { parseEgressAllow } from "./delivery/EgressAllow.ts"
import { EgressGuard } from "./delivery/EgressGuard.ts"
import { MediaFetch } from "./delivery/MediaFetch.ts"
import { WebhookSender } from "./delivery/WebhookSender.ts"
import type { WebhookRequest } from "./delivery/WebhookSender.ts"
import type { AttemptOutcome } from "./domain/Webhook.ts"
import { Listener } from "./http/Listener.ts"
import type { ListenerBounds } from "./http/Listener.ts"
import * as Routes from "./http/Routes.ts"
import { Catalog } from "./models/Catalog.ts"
import { ApiKeys } from "./services/ApiKeys.ts"
import { Artifacts } from "./services/Artifacts.ts"
import { CallbackBells } from "./services/CallbackBells.ts"
import { CallbackKeys } from "./services/CallbackKeys.ts"
import { Callbacks } from "./services/Callbacks.ts"
import { Deliveries } from "./services/Deliveries.ts"
import { Endpoints } from "./services/Endpoints.ts"
import { Metering } from "./services/Metering.ts"
import { OperatorFaults } from "./services/OperatorFaults.ts"
import { Pacing } from "./services/Pacing.ts"
import { LogRetention } from "./services/LogRetention.ts"
import { PaidSubmit } from "./services/PaidSubmit.ts"
import { Passthrough } from "./services/Passthrough.ts"
import { Process } from "./services/Process.ts"
import { Reconcile } from "./services/Reconcile.ts"
import { Replays } from "./services/Replays.ts"
import { RunningTasks } from "./services/RunningTasks.ts"
import { Router } from "./services/Router.ts"
import { Secrets } from "./services/Secrets.ts"
import { SignatureHelp } from "./services/SignatureHelp.ts"
import { Slots } from "./services/Slots.ts"
import { Sweeps } from "./services/Sweeps.ts"
import { TaskChanges } from "./services/TaskChanges.ts"
import { TaskCreation } from "./services/TaskCreation.ts"
import { TaskEnding } from "./services/TaskEnding.ts"
import { TaskHistory } from "./services/TaskHistory.ts"
import { TaskMedia } from "./services/TaskMedia.ts"
import { TaskOutput } from "./services/TaskOutput.ts"
import { TaskRunner } from "./services/TaskRunner.ts"
import { UpstreamCalls } from "./services/UpstreamCalls.ts"
import { TaskWatch } from "./services/TaskWatch.ts"
import { Users } from "./services/Users.ts"
import { VendorWork } from "./services/VendorWork.ts"
import { Wallet } from "./services/Wallet.ts"
import { WebhookDispatcher } from "./services/WebhookDispatcher.ts"
import { AdmissionStore } from "./store/AdmissionStore.ts"
import { ArtifactBlobs } from "./store/ArtifactBlobs.ts"
import { ArtifactIndex } from "./store/ArtifactIndex.ts"
import { CallbackStore } from "./store/CallbackStore.ts"
import { AllowanceStore } from "./store/AllowanceStore.ts"
import { CallStore } from "./store/CallStore.ts"
import { AttemptStore } from "./store/AttemptStore.ts"
import * as Database from "./store/Database.ts"
import { DeliveryLog } from "./store/DeliveryLog.ts"
import * as DeliveryStore from "./store/DeliveryStoreLive.ts"
import { EndpointStore } from "./store/EndpointStore.ts"
import * as Migrations from "./store/Migrations.ts"
import { PartitionStore } from "./store/PartitionStore.ts"
import { ProcessStore } from "./store/ProcessStore.ts"
import { TaskHistoryStore } from "./store/TaskHistoryStore.ts"
import { ReplayStore } from "./store/ReplayStore.ts"
import * as TaskStore from "./store/TaskStoreLive.ts"
import * as S3Blobs from "./store/S3Blobs.ts"
import { UserStore } from "./store/UserStore.ts"
import { VendorSlots } from "./store/VendorSlots.ts"
import { VendorTurns } from "./store/VendorTurns.ts"
import { WalletStore } from "./store/WalletStore.ts"
import { TestGateway } from "./testing/TestGateway.ts"
import { Accounts } from "./vendors/Accounts.ts"
import { Upstream } from "./vendors/Upstream.ts"
import * as LiveVendors from "./vendors/LiveVendors.ts"
import { MockVendor } from "./vendors/mock/MockVendor.ts"
import type { MockStep } from "./vendors/mock/MockVendor.ts"

/** The database that the configuration names, migrated. */
export const database = Layer.unwrap(
  Effect.map(AppConfig, ({ dataDir, database: options }) => {
    if (options._tag === "Embedded") {
      const embedded = Database.layerEmbedded({ dataDir, durable: options.durable })
      return Migrations.layer().pipe(Layer.provideMerge(embedded))
    }
    const { url } = options
    // A migration may take long, and wait for that of another process
    const patient = Database.layerPostgres({ url, patience: "endless", maxConnections: 1 })
    const migrated = Migrations.layer().pipe(Layer.provide(patient))
    return Database.layerPostgres({ url }).pipe(Layer.provide(migrated))
  })
)

/** The tables. */
export const stores = Layer.mergeAll(
  AdmissionStore.layer,
  TaskHistoryStore.layer,
  TaskStore.layer,
  DeliveryStore.layer,
  DeliveryLog.layer,
  ArtifactIndex.layer,
  CallbackStore.layer,
  AllowanceStore.layer,
  CallStore.layer,
  AttemptStore.layer,
  EndpointStore.layer,
  PartitionStore.layer,
  ProcessStore.layer,
  ReplayStore.layer,
  UserStore.layer,
  VendorSlots.layer,
  VendorTurns.layer,
  WalletStore.layer
)

/** What talks to the outside, or reads files. */
export const leaves = Layer.unwrap(
  Effect.gen(function* () {
    const config = yield* AppConfig
    const allow = yield* Effect.fromResult(parseEgressAllow(config.egressAllow)).pipe(
      Effect.mapError(
        (error) =>
          new ConfigFault({
            message: `EGRESS_ALLOW: ${error.message}; set hosts and CIDRs, separated by commas`
          })
      )
    )
    const catalog = Option.match(config.catalogFile, {
      onNone: () => Catalog.layer,
      onSome: Catalog.layerFile
    })
    return Layer.mergeAll(
      WebhookSender.layer({ serviceName: config.serviceName }),
      MediaFetch.layer({ serviceName: config.serviceName }),
      config.artifactStore._tag === "Directory"
        ? ArtifactBlobs.layerDirectory(config.artifactStore.directory)
        : S3Blobs.layer(config.artifactStore),
      Upstream.layer({ timeout: config.upstreamTimeout }).pipe(Layer.provideMerge(catalog)),
      LiveVendors.layer({
        delay: config.simulatorDelay,
        mayDisableInspection: config.dashScopeInspectionOptOut
      }).pipe(Layer.provideMerge(Accounts.layer(config.accounts)))
    ).pipe(Layer.provideMerge(EgressGuard.layer({ allow })))
  })
)

/** The services that the edge and the actors call. */
export const services = Layer.mergeAll(
  Passthrough.layer,
  Deliveries.layer,
  LogRetention.layer,
  SignatureHelp.layer,
  Router.layer,
  Sweeps.layer,
  TaskHistory.layer,
  TaskRunner.layer,
  TaskWatch.layer,
  WebhookDispatcher.layer
).pipe(
  Layer.provideMerge(Endpoints.layer),
  Layer.provideMerge(RunningTasks.layer),
  Layer.provideMerge(
    Layer.mergeAll(
      Metering.layer,
      UpstreamCalls.layer,
      TaskCreation.layer,
      TaskOutput.layer,
      TaskEnding.layer,
      VendorWork.layer.pipe(
        Layer.provide([PaidSubmit.layer, Reconcile.layer, TaskMedia.layer]),
        Layer.provide([Pacing.layer, TaskOutput.layer])
      )
    )
  ),
  Layer.provideMerge(
    Layer.mergeAll(
      Slots.layer,
      Callbacks.layer.pipe(
        Layer.provide(CallbackKeys.layer),
        Layer.provideMerge(CallbackBells.layer)
      )
    )
  ),
  Layer.provideMerge(
    Layer.mergeAll(
      ApiKeys.layer,
      Artifacts.layer,
      OperatorFaults.layer,
      Process.layer,
      Replays.layer,
      TaskChanges.layer,
      Users.layer,
      Wallet.layer
    )
  ),
  Layer.provideMerge(Secrets.layer)
)

/** The actors that wait, and the sweeps that find what was lost. */
export const actors = Layer.mergeAll(
  TaskActor.layer,
  EndpointActor.layer,
  Retention.layer,
  Sweeper.layer,
  AlarmClock.layer,
  Audit.layer,
  WalletAudit.layer
)

/** All but the HTTP server: what a developer's test composes with other leaves. */
export const core = actors.pipe(
  Layer.provideMerge(services),
  Layer.provideMerge(Wakes.layer),
  Layer.provideMerge(Cluster.layerSingle)
)

/** Running requests are given this long at shutdown. */
const gracefulShutdown = Duration.seconds(5)

/** Listens there. */
export const listen = (
  address: { readonly host: string; readonly port: number },
  bounds?: ListenerBounds
) =>
  Layer.unwrap(
    Effect.map(Listener, ({ server }) =>
      NodeHttpServer.layer(() => server, { ...address, gracefulShutdownTimeout: gracefulShutdown })
    )
  ).pipe(Layer.provideMerge(Listener.layer(bounds)))

/** Listens on `HOST` and `PORT`. */
export const server = Layer.unwrap(
  Effect.map(AppConfig, ({ host, port }) => listen({ host, port }))
)

export const http = Routes.serve.pipe(Layer.provide(server))

export const platform = NodeServices.layer

export interface TestOptions {
  /** What each submit comes to, in order; the last one again and again. Default: one picture. */
  readonly vendor?: readonly [MockStep, ...Array<MockStep>]
  /** What each webhook attempt comes to. Default: 200 at once; see `WebhookSenderLog`. */
  readonly webhook?: (request: WebhookRequest) => Effect.Effect<AttemptOutcome>
  /** Variables of contract 9. */
  readonly env?: Readonly<Record<string, string>>
}

/**
 * The whole gateway in a test's own process: a scripted vendor, recorded webhooks, an embedded
 * Postgres in memory. Every wait goes by the clock of the fiber, so a test clock makes hours pass.
 */
export const layerTest = (options: TestOptions = {}) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const dataDir = yield* files.makeTempDirectoryScoped()
      const env = { DATA_DIR: dataDir, BASE_URL: "http://gateway.test", ...options.env }
      const mocks = Layer.mergeAll(
        WebhookSender.layerMock(options.webhook),
        MockVendor.layer(options.vendor ?? [MockVendor.result()])
      )
      const memory = Migrations.layer().pipe(
        Layer.provideMerge(Database.layerEmbedded({ dataDir: "memory", durable: false }))
      )
      return TestGateway.layer.pipe(
        Layer.provideMerge(core),
        Layer.provideMerge(stores),
        // The later one holds where two give the same service
        Layer.provideMerge(Layer.mergeAll(leaves, mocks)),
        Layer.provideMerge(memory),
        Layer.provideMerge(AppConfig.layerOf(env)),
        Layer.provide(NodeHttpServer.layerHttpServices)
      )
    })
  ).pipe(Layer.provideMerge(platform), Layer.orDie)
