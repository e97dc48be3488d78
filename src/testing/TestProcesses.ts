import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Clock, Effect, Exit, Latch, Layer, Schedule, Scope } from "effect"
import type { Cause, Context } from "effect"
import { HttpEffect } from "effect/http"
import type { HttpServerRequest } from "effect/http"
import { ArtifactBlobs } from "../artifacts/ArtifactBlobs.ts"
import { AppConfig } from "../config/Config.ts"
import { layerSession } from "../db/Database.ts"
import { PgliteSession } from "../db/PgliteStream.ts"
import type { PgliteEngine } from "../db/PgliteStream.ts"
import * as Gateway from "../Gateway.ts"
import * as Routes from "../http/Routes.ts"
import { endWithin } from "../process/SlotArray.ts"
import { TaskStore } from "../tasks/TaskStore.ts"
import type { ApiKeys } from "../users/ApiKeys.ts"
import { VendorClient } from "../vendors/VendorClient.ts"
import type { VendorAccount } from "../vendors/VendorClient.ts"
import { VendorError } from "../vendors/VendorError.ts"
import { mockOutcome, WebhookSender } from "../webhooks/WebhookSender.ts"
import type { Failure, Failures } from "./Failures.ts"
import type { TestTime } from "./TestTime.ts"
import { unfinishedWork } from "./UnfinishedWork.ts"

export interface World {
  readonly engine: PgliteEngine
  /** The environment variables of each process. */
  readonly env: Readonly<Record<string, string>>
  readonly vendor: VendorClient["Service"]
  readonly sender: WebhookSender["Service"]
  readonly failures: Failures
  readonly time: TestTime
}

/** One process of the gateway, simulated inside the test process. */
interface TestProcess {
  isAlive: boolean
  readonly scope: Scope.Closeable
}

type Services = Layer.Success<ReturnType<typeof layerOf>>

interface Running {
  readonly process: TestProcess
  readonly context: Context.Context<Services>
  readonly handle: (request: Request) => Promise<Response>
}

/**
 * A gateway whose process can die and be followed by another one. A dead process no longer reaches the store, vendors
 * or receivers, and its fibers end; data that were not written are lost. ADR 0216
 */
export const makeProcesses = Effect.fnUntraced(function* (world: World) {
  const outer = yield* Effect.scope
  const outerContext = yield* Effect.context<never>()
  const isRunning = yield* Latch.make()
  let running: Running | undefined
  let startFault: Cause.Cause<unknown> | undefined

  const start = Effect.suspend(() => {
    const process: TestProcess = { isAlive: true, scope: Scope.makeUnsafe() }
    return Effect.map(startOf(world, process, die(process)), (started) => {
      running = started
      isRunning.openUnsafe()
    })
  })

  /** Acts as a supervisor on the gateway's clock. No process starts while the store is unavailable. */
  const startAgain = world.time.during(start).pipe(
    Effect.retry({
      schedule: Schedule.spaced("1 second"),
      while: () => world.failures.isAway("store away")
    }),
    Effect.provideService(
      Clock.Clock,
      world.time.clock(() => false)
    ),
    Effect.catchCause((cause) => {
      startFault = cause
      return isRunning.open
    })
  )

  /** Ends the process at this point. The next one starts in the meantime. */
  const die = (process: TestProcess) =>
    Effect.suspend(() => {
      if (process.isAlive) {
        process.isAlive = false
        isRunning.closeUnsafe()
        const next = Effect.andThen(world.time.during(end(process)), startAgain)
        Effect.runForkWith(outerContext)(Effect.forkIn(next, outer))
      }
      return gone
    })

  const end = ({ scope }: TestProcess) => endWithin(Scope.close(scope, Exit.void), endMillisMax)

  yield* Effect.orDie(start)
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() =>
      running === undefined ? Effect.void : Scope.close(running.process.scope, Exit.void)
    )
  )
  const current = Effect.flatMap(isRunning.await, () =>
    startFault !== undefined || running === undefined
      ? Effect.die(new Error("The next process has not started", { cause: startFault }))
      : Effect.succeed(running)
  )
  return {
    current,
    /** How many tasks and deliveries are unfinished; `undefined` while the store is unavailable. */
    unfinished: Effect.flatMap(current, ({ context }) => Effect.provide(unfinishedWork, context)),
    /** Kills the running process and waits for the next one. */
    restart: Effect.gen(function* () {
      const { process } = yield* current
      yield* Effect.forkIn(die(process), outer)
      yield* Effect.yieldNow
      // The next one starts when the store is available again, for which time has to pass
      if (world.failures.isAway("store away")) {
        yield* world.time.passUntil(
          Effect.sync(() => running?.process.isAlive === true),
          "1 day"
        )
      }
      yield* current
    })
  }
})

/** Starts a process; a failed start leaves nothing behind. */
const startOf = Effect.fnUntraced(
  function* (world: World, process: TestProcess, crash: Die) {
    const context = yield* Layer.buildWithMemoMap(
      layerOf(world, process, crash),
      Layer.makeMemoMapUnsafe(),
      process.scope
    ).pipe(
      Effect.provideService(
        Clock.Clock,
        world.time.clock(() => !process.isAlive)
      )
    )
    const handle = yield* makeHandle.pipe(
      Effect.provide(context),
      Effect.provideService(Scope.Scope, process.scope)
    )
    return { process, context, handle }
  },
  (starting, _world, { scope }) =>
    Effect.onError(starting, (cause) => Scope.close(scope, Exit.failCause(cause)))
)

/** How long the fibers of a dead process may take to end; they have nothing to wait for. */
const endMillisMax = 1000

/** Nothing runs after the point of death. The scope interrupts this even in an uninterruptible region. */
const gone = Effect.interruptible(Effect.never)

const makeHandle = Effect.gen(function* () {
  const app = yield* Routes.toHttpEffect
  // Handlers get the context of the process, including its clock
  return HttpEffect.toWebHandlerWith<
    ApiKeys,
    ApiKeys | HttpServerRequest.HttpServerRequest | Scope.Scope
  >(yield* Effect.context<ApiKeys>())(app)
})

type Die = Effect.Effect<never>

const layerOf = (world: World, process: TestProcess, die: Die) => {
  const at = (failure: Failure) =>
    Effect.suspend(() => (world.failures.take(failure) ? die : Effect.void))
  const within = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => (process.isAlive ? work : gone))
  const broken = () =>
    !process.isAlive
      ? new Error("The process has died")
      : world.failures.isAway("store away")
        ? new Error("The store is away")
        : undefined
  const outside = Layer.mergeAll(
    Layer.succeed(VendorClient, failingVendor(world, at, within)),
    Layer.succeed(WebhookSender, failingSender(world, at, within))
  )
  return Gateway.core.pipe(
    Layer.provideMerge(Layer.merge(Gateway.stores, failingTasks(at))),
    // If two layers provide a service, the later one wins
    Layer.provideMerge(Layer.mergeAll(Gateway.adapters, watchedBlobs(world), outside)),
    Layer.provideMerge(layerSession(Effect.succeed(new PgliteSession(world.engine, broken)))),
    Layer.provideMerge(AppConfig.layerOf(world.env)),
    Layer.provideMerge(Layer.merge(NodeHttpServer.layerHttpServices, Gateway.platform))
  )
}

type At = (failure: Failure) => Effect.Effect<void>
type Within = <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const lost = new VendorError({ class: "AMBIGUOUS", message: "the connection was lost" })

const failingVendor = (
  { failures, vendor }: World,
  at: At,
  within: Within
): VendorClient["Service"] => {
  const failing = (account: VendorAccount): VendorAccount => ({
    ...account,
    submit: (request) =>
      at("crash before submit").pipe(
        Effect.andThen(within(account.submit(request))),
        Effect.tap(at("crash after submit")),
        Effect.tap(() =>
          failures.take("vendor accepts then connection lost") ? Effect.fail(lost) : Effect.void
        )
      ),
    poll: (handle) => within(account.poll(handle)),
    cancel: (handle) => within(account.cancel(handle))
  })
  return {
    ...vendor,
    choose: (entry) => Effect.map(vendor.choose(entry), failing),
    owner: (accountId) => Effect.map(vendor.owner(accountId), failing)
  }
}

const receiverAway = {
  ...mockOutcome(0),
  status: null,
  failure: "connect",
  detail: "connection refused"
} as const

const failingSender = (
  { failures, sender }: World,
  at: At,
  within: Within
): WebhookSender["Service"] => ({
  ...sender,
  send: (request) =>
    at("crash before webhook").pipe(
      Effect.andThen(
        within(
          Effect.suspend(() => {
            if (!failures.isAway("receivers away")) return sender.send(request)
            request.onStart?.()
            return Effect.succeed(receiverAway)
          })
        )
      ),
      Effect.tap(at("crash after webhook"))
    )
})

const failingTasks = (at: At) =>
  Layer.effect(
    TaskStore,
    Effect.map(TaskStore, (live) => ({
      ...live,
      finish: (finish) =>
        at("crash before finish").pipe(
          Effect.andThen(live.finish(finish)),
          Effect.tap(at("crash after finish"))
        )
    }))
  ).pipe(Layer.provide(Gateway.stores))

/** Files are written outside the event loop, so the time waits for them. */
const watchedBlobs = ({ time }: World) =>
  Layer.effect(
    ArtifactBlobs,
    Effect.map(ArtifactBlobs, (live) => ({
      ...live,
      put: (id, bytes, record) => time.during(live.put(id, bytes, record)),
      get: (id) => time.during(live.get(id)),
      remove: (id) => time.during(live.remove(id))
    }))
  ).pipe(Layer.provide(Gateway.adapters))
