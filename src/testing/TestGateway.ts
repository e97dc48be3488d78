import { Context, Effect, Option } from "effect"
import type { Duration } from "effect"
import { make as makeCredits, microPerCredit } from "../domain/Credits.ts"
import { ApiKeys } from "../users/ApiKeys.ts"
import { Users } from "../users/Users.ts"
import { Wallet } from "../wallet/Wallet.ts"
import type { WebhookSenderLog } from "../webhooks/WebhookSender.ts"
import type { Absence, Failure, Failures } from "./Failures.ts"
import { makeSnapshot } from "./Snapshot.ts"
import type { makeProcesses } from "./TestProcesses.ts"
import type { TestTime } from "./TestTime.ts"
import { makeTestWebhooks } from "./TestWebhooks.ts"
import type { PassUntil, TestWebhooks } from "./TestWebhooks.ts"

export interface QuietOptions {
  /** In the gateway's time. Default: 3 days, which is enough for all attempts of every delivery. */
  readonly atMost?: Duration.Input
}

/**
 * A gateway inside a test process, with one user who has 1000 credits and a key. It runs on the test's clock, which
 * these methods or `TestClock` itself advance. docs/developing.md#test-layers
 */
export class TestGateway extends Context.Service<
  TestGateway,
  {
    /** The user's key, with the scopes `inference` and `manage`. */
    readonly key: string
    /** `ADMIN_TOKEN`, for the operator's routes. */
    readonly adminToken: string
    /** `BASE_URL`. Nothing listens there. */
    readonly baseUrl: string
    /** Like the global `fetch`, but without a socket. Paths are relative to the gateway's address. */
    readonly fetch: (path: string, init?: RequestInit) => Effect.Effect<Response>
    /** The same with a complete request. */
    readonly send: (request: Request) => Effect.Effect<Response>
    /** The gateway's Unix time in milliseconds. */
    readonly now: Effect.Effect<number>
    /** Advances the time. Work that becomes due in between is done at its time. */
    readonly advance: (duration: Duration.Input) => Effect.Effect<void>
    /** Advances the time until all tasks and deliveries have ended. Dies with the unfinished ones after `atMost`. */
    readonly runUntilQuiet: (options?: QuietOptions) => Effect.Effect<void>
    /** Runs an effect on the gateway's clock, which is advanced until the effect has ended. */
    readonly whileTimePasses: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    readonly webhooks: TestWebhooks
    /** Makes this failure happen once, when its point is next reached. */
    readonly failNext: (failure: Failure) => Effect.Effect<void>
    /** Makes something unavailable from now on, for this duration of the gateway's time. */
    readonly setAway: (what: Absence, duration: Duration.Input) => Effect.Effect<void>
    /** Kills the process as `kill -9` does. Another process with the same store follows. */
    readonly restart: Effect.Effect<void>
    /** The ledger and the timelines of all tasks as text, equal in every run. */
    readonly snapshot: Effect.Effect<string>
  }
>()("gateway/testing/TestGateway") {}

export interface GatewayParts {
  readonly processes: Effect.Success<ReturnType<typeof makeProcesses>>
  readonly time: TestTime
  readonly failures: Failures
  readonly log: WebhookSenderLog["Service"]
  readonly adminToken: string
  readonly baseUrl: string
}

const quietAtMost = "3 days"

export const makeTestGateway = Effect.fnUntraced(function* (parts: GatewayParts) {
  const { adminToken, baseUrl, failures, log, processes, time } = parts
  const startedAt = time.now()
  const { context } = yield* processes.current
  const key = yield* Effect.provide(makeKey, context)

  const send = (request: Request) =>
    Effect.flatMap(processes.current, ({ handle }) => {
      time.noted()
      return Effect.promise(() => handle(request))
    })
  const fetch = (path: string, init?: RequestInit) =>
    Effect.suspend(() => send(new Request(new URL(path, baseUrl), init)))

  const read = (path: string): Effect.Effect<unknown> =>
    fetch(path, { headers: { authorization: `Bearer ${key}` } }).pipe(
      Effect.flatMap((response) =>
        response.ok
          ? Effect.promise((): Promise<unknown> => response.json())
          : Effect.die(new Error(`GET ${path}: ${response.status}`))
      )
    )
  const snapshot = makeSnapshot(read, startedAt)

  const passUntil: PassUntil = Effect.fnUntraced(function* (isReached, atMost, missing) {
    if (yield* time.passUntil(isReached, atMost)) return
    const pending = failures.pending.map((it) => `Not reached: ${it}`)
    return yield* Effect.die(new Error([missing(), ...pending, "", yield* snapshot].join("\n")))
  })

  const isQuiet = Effect.map(processes.unfinished, (count) => count === 0)

  return TestGateway.of({
    key,
    adminToken,
    baseUrl,
    fetch,
    send,
    now: Effect.sync(time.now),
    advance: time.advance,
    runUntilQuiet: ({ atMost = quietAtMost } = {}) =>
      passUntil(isQuiet, atMost, () => "Tasks or deliveries are unfinished"),
    whileTimePasses: time.whilePassing,
    webhooks: makeTestWebhooks({ fetch, key, log, passUntil, startedAt }),
    failNext: (failure) => Effect.sync(() => failures.ask(failure)),
    setAway: (what, duration) => Effect.sync(() => failures.setAway(what, duration)),
    restart: processes.restart,
    snapshot
  })
})

const credits = 1000n

const makeKey = Effect.gen(function* () {
  const user = yield* (yield* Users).create({
    email: "test@example.com",
    name: Option.none(),
    password: Option.none()
  })
  yield* (yield* Wallet).topUp({
    userId: user.id,
    amount: makeCredits(credits * microPerCredit),
    operationId: `top_up:${user.id}:test`,
    note: Option.none(),
    traceId: "0".repeat(32)
  })
  const { key } = yield* (yield* ApiKeys).create({
    userId: user.id,
    name: "test",
    scopes: ["inference", "manage"],
    expiresAt: Option.none()
  })
  return key
})
