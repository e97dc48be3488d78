import { NodeHttpServer, NodeServices } from "@effect/platform-node"
import { Clock, Context, Duration, Effect, Layer, Result } from "effect"
import type { Scope } from "effect"
import { HttpEffect } from "effect/http"
import type { HttpServerRequest } from "effect/http"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { inspect } from "node:util"
import { AppConfig } from "../../src/config/Config.ts"
import type { Database } from "../../src/db/Database.ts"
import { heartbeatSeconds } from "../../src/domain/limits/Limits.ts"
import { parseEgressAllow } from "../../src/domain/network/EgressAllow.ts"
import type { Scope as KeyScope } from "../../src/domain/Scope.ts"
import type { AttemptOutcome } from "../../src/domain/Webhook.ts"
import type { Resolve } from "../../src/egress/EgressConnector.ts"
import { EgressGuard } from "../../src/egress/EgressGuard.ts"
import * as Gateway from "../../src/Gateway.ts"
import * as Routes from "../../src/http/Routes.ts"
import { HeartbeatSeconds } from "../../src/process/heartbeat/Process.ts"
import { make as makeSimulator } from "../../src/sandbox/Simulator.ts"
import type { ApiKeys } from "../../src/users/ApiKeys.ts"
import { VendorClient } from "../../src/vendors/VendorClient.ts"
import type { VendorAccount } from "../../src/vendors/VendorClient.ts"
import { DeliveryStore } from "../../src/webhooks/DeliveryStore.ts"
import { WebhookSender, WebhookSenderLog } from "../../src/webhooks/WebhookSender.ts"
import type { AttemptNotStarted, WebhookRequest } from "../../src/webhooks/WebhookSender.ts"
import { makeCaller } from "./callers.ts"
import { exchangesSettled } from "./openExchanges.ts"
import { startedDatabase, stores } from "./stores.ts"
import { temporaryFolder } from "./temporaryFolder.ts"
import { pause } from "./until.ts"

/** The operator's token and the master key of every gateway that the tests start. */
export const adminToken = "operator-token-of-the-tests"
export const masterKey = Buffer.alloc(32, 7).toString("base64")

const egressAllow = "127.0.0.1,::1,localhost"

/** The base URL of a gateway in this process, for example in artifact URLs. */
export const baseUrl = "http://gateway.test"

/**
 * Seconds between the heartbeats of a gateway that is alone on its store. Heartbeats, and the work that comes with
 * them, cause nearly all the cost of moving the clock by minutes. This is the longest interval at which a single process
 * behaves as with the default: its turn to scan for due deliveries lasts 9 seconds, and its heartbeats count for 10.
 */
export const longHeartbeat = 8

export interface GatewayOptions {
  /** A migrated database. Default: a fresh embedded one in memory. */
  readonly database?: Layer.Layer<Database>
  /** The outcome of each webhook attempt, which may wait or never end. Default: an immediate 200. */
  readonly webhook?: (request: WebhookRequest) => Effect.Effect<AttemptOutcome, AttemptNotStarted>
  /** How many attempts may run to a URL at once. Default: no limit. */
  readonly fairShare?: (url: string) => number
  /** Options to send webhooks for real, such as `WebhookSender.layer({ ca })`. */
  readonly sender?: typeof WebhookSender.layer extends (options?: infer O) => unknown ? O : never
  /** The vendor of all models. Default: the simulator, whose jobs take `SIMULATOR_DELAY`, or else 3 seconds. */
  readonly vendor?: Partial<VendorAccount>
  /** Uses the vendors for which `env` has keys over the network instead of the simulator. */
  readonly areVendorsLive?: boolean
  /** Resolves host names without asking name servers. */
  readonly resolve?: Resolve
  /** The stores of the gateway, for example with faults. */
  readonly stores?: typeof Gateway.stores
  /** Wraps the delivery store, for example to lose its responses. */
  readonly deliveries?: (live: DeliveryStore["Service"]) => DeliveryStore["Service"]
  /** Seconds between heartbeats. Default: `longHeartbeat` on a separate store, else the usual interval. */
  readonly heartbeatSeconds?: number | undefined
  /** Further variables, by their names in the environment. */
  readonly env?: Readonly<Record<string, string>>
}

/** The routes of a gateway in this process, without a socket. */
export class GatewayHttp extends Context.Service<
  GatewayHttp,
  {
    /** `path` includes the query. Returns what `fetch` would return. */
    readonly fetch: (path: string, init?: RequestInit) => Effect.Effect<Response>
  }
>()("test/GatewayHttp") {
  static readonly layer = Layer.effect(
    GatewayHttp,
    Effect.gen(function* () {
      const app = yield* Routes.toHttpEffect
      // The context includes the test's clock, so handlers use its time
      const handle = HttpEffect.toWebHandlerWith<
        ApiKeys,
        ApiKeys | HttpServerRequest.HttpServerRequest | Scope.Scope
      >(yield* Effect.context<ApiKeys>())(app)
      return {
        fetch: (path, init) =>
          Effect.promise(() => handle(new Request(new URL(path, baseUrl), init)))
      }
    })
  )
}

/**
 * The whole gateway in this process: all services and actors, the routes as `GatewayHttp`, and the sent webhooks as
 * `WebhookSenderLog`. Every wait uses the test's clock.
 */
export const layerGateway = (options: GatewayOptions = {}) =>
  Layer.unwrap(
    Effect.sync(() => {
      const sender =
        options.sender === undefined
          ? WebhookSender.layerMock(options.webhook, options.fairShare)
          : Layer.merge(
              Layer.provide(WebhookSender.layer(options.sender), Gateway.adapters),
              Layer.succeed(WebhookSenderLog, { sent: Effect.succeed([]) })
            )
      const scripted = options.vendor === undefined ? sandboxVendors : layerVendor(options.vendor)
      const vendors = options.areVendorsLive === true ? Layer.empty : scripted
      const names =
        options.resolve === undefined
          ? Layer.empty
          : EgressGuard.layer({
              allow: Result.getOrThrow(parseEgressAllow(egressAllow)),
              resolve: options.resolve
            })
      return GatewayHttp.layer.pipe(
        Layer.provideMerge(Gateway.core),
        Layer.provideMerge(
          Layer.succeed(HeartbeatSeconds, options.heartbeatSeconds ?? usualHeartbeat(options))
        ),
        Layer.provideMerge(
          Layer.effect(
            DeliveryStore,
            Effect.map(DeliveryStore, (live) => options.deliveries?.(live) ?? live)
          )
        ),
        Layer.provideMerge(options.stores ?? Gateway.stores),
        // If two layers provide a service, the later one wins
        Layer.provideMerge(Layer.mergeAll(Gateway.adapters, sender, vendors, names)),
        Layer.provideMerge(options.database ?? startedDatabase),
        Layer.provideMerge(
          AppConfig.layerOf({
            DATA_DIR: temporaryFolder("data"),
            BASE_URL: baseUrl,
            ADMIN_TOKEN: adminToken,
            MASTER_KEY: masterKey,
            EGRESS_ALLOW: egressAllow,
            SIMULATOR_DELAY: "3 seconds",
            // Off, because a test may poll while its clock stands still
            MANAGE_RATE_LIMIT_PER_MINUTE: "0",
            ...options.env
          })
        ),
        Layer.provide([NodeServices.layer, NodeHttpServer.layerHttpServices]),
        Layer.orDie
      )
    })
  )

const usualHeartbeat = ({ database, env }: GatewayOptions) => {
  const isAlone = database === undefined || database === stores.postgres
  // With a `DATABASE_URL` more than one process uses the store
  return isAlone && env?.["DATABASE_URL"] === undefined ? longHeartbeat : heartbeatSeconds
}

/** A vendor that the test scripts. A method without a script dies. */
export const layerVendor = (account: Partial<VendorAccount>, isSandbox = false) => {
  const unscripted = (verb: string) => () => Effect.die(new Error(`${verb} is not scripted`))
  const whole: VendorAccount = {
    accountId: "scripted",
    submit: unscripted("submit"),
    poll: unscripted("poll"),
    cancel: () => Effect.succeed("Unsupported"),
    ...account
  }
  return Layer.succeed(VendorClient, {
    choose: () => Effect.succeed(whole),
    owner: () => Effect.succeed(whole),
    isServed: () => true,
    accountsFor: () => (isSandbox ? [] : [whole]),
    isSandbox: () => isSandbox
  })
}

/** Every vendor is the simulator. */
const sandboxVendors = Layer.unwrap(
  Effect.gen(function* () {
    const { simulatorDelay } = yield* AppConfig
    const { account } = yield* makeSimulator({ delay: simulatorDelay })
    return layerVendor(account, true)
  })
)

/** A short real wait, in which the store and the renderers make progress. */
const breathe = Effect.promise(() => pause(5))

/**
 * Advances the test's clock in steps. After each step, waits until the store has answered all requests and vendors and
 * receivers have responded, so that due work is done at its time.
 */
export const advance = Effect.fnUntraced(function* (
  duration: Duration.Input,
  step: Duration.Input = "1 second"
) {
  const sql = yield* SqlClient.SqlClient
  const stepMillis = Duration.toMillis(step)
  for (let left = Duration.toMillis(duration); left > 0; left -= stepMillis) {
    yield* TestClock.adjust(Math.min(left, stepMillis))
    // Each round trip lets one more statement of a chain finish
    for (let round = 0; round < 6; round += 1) yield* sql`SELECT 1`
    yield* Effect.promise(exchangesSettled)
    yield* breathe
  }
})

/**
 * Repeats the effect until the result is as expected, for at least 60 seconds in real time. The clock stands still, but
 * after every two seconds in real time it moves by one: on a busy machine a step may have come so late that the time
 * for the one after it has passed.
 */
export const eventually = <A, E, R>(
  ask: Effect.Effect<A, E, R>,
  isThere: (answer: A) => boolean
): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    let answer = yield* ask
    for (let round = 0; !isThere(answer); round += 1) {
      if (round === 12_000) {
        throw new Error(
          `Timed out while waiting for the expected result; the last one was ${inspect(answer)}`
        )
      }
      if (round % lateRounds === lateRounds - 1) yield* oneSecondMore
      yield* breathe
      answer = yield* ask
    }
    return answer
  })

/** Takes at least two seconds in real time. */
const lateRounds = 400

/** Moves the clock, if it is a test's. */
const oneSecondMore = Effect.flatMap(Clock.Clock, (clock) =>
  "adjust" in clock ? TestClock.adjust("1 second") : Effect.void
)

/**
 * Advances the clock second by second until the condition holds, because rendering, reading and sending take real time.
 */
export const secondsUntil = (is: () => boolean) =>
  eventually(Effect.andThen(advance("1 second"), Effect.sync(is)), Boolean)

let users = 0

/** Creates a user with credits and a key with both scopes, using the services directly. */
export const makeUser = Effect.fnUntraced(function* (
  options: { readonly credits?: number; readonly scopes?: ReadonlyArray<KeyScope> } = {}
) {
  users += 1
  const { credits = 1000, scopes } = options
  const { key, userId } = yield* makeCaller(credits, `user-${users}@example.com`, scopes)
  return { id: userId, key, call: callWith(key) }
})

export type User = Effect.Success<ReturnType<typeof makeUser>>

/** Calls the gateway in this process with a key. `body` is sent as JSON. */
export const callWith =
  (token: string | undefined) =>
  (
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {}
  ): Effect.Effect<HttpResult, never, GatewayHttp> =>
    Effect.gen(function* () {
      const http = yield* GatewayHttp
      const response = yield* http.fetch(path, {
        method,
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
      return yield* Effect.promise(() => readResult(response))
    })

/** Calls the gateway in this process with the operator's token. */
export const operator = callWith(adminToken)

/** A response with its complete body. */
export interface HttpResult {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed body, or `undefined`. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts what is in it
  readonly json: any
}

export const readResult = async (response: Response): Promise<HttpResult> => {
  const text = await response.text()
  const isJson = /\bjson\b/u.test(response.headers.get("content-type") ?? "")
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: isJson && text !== "" ? JSON.parse(text) : undefined
  }
}
