import { PgClient, PgConnection } from "@effect/sql-pg"
import { Cause, Context, Deferred, Duration, Effect, Layer, Option, Queue, Schedule } from "effect"
import type { Redacted } from "effect"
import { StoreUnavailable } from "../domain/Problem.ts"
import type { Timeouts } from "./ConnectionWatchdog.ts"
import { addressOf, sessionOf } from "./Database.ts"
import { connectionTrouble } from "./DatabaseUnavailable.ts"
import { storeFailures } from "./StoreFailures.ts"

/**
 * The one connection of this process outside the pool: for the heartbeat, which must never wait for other statements,
 * and for notifications from other processes. ADR 0176, ADR 0178.
 */
export interface DirectConnection {
  /**
   * Runs a short, repeatable statement. Uses the pool while the connection is down. Columns must have one-word names,
   * because only the pool transforms names.
   */
  readonly query: (
    statement: string,
    parameters: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<object>, StoreUnavailable>
  /** Called with the payload of each notification. Notifications sent while the connection is down are lost. */
  readonly onNotification: (handler: (payload: string) => void) => void
  /** Whether it is open and listening. */
  readonly isOpen: () => boolean
}

/** `None` for the embedded store, which has only one connection and one process. */
export const DirectConnection = Context.Reference<Option.Option<DirectConnection>>(
  "gateway/db/DirectConnection",
  { defaultValue: () => Option.none() }
)

/** The channel for notifications between processes. */
export const notificationChannel = "gateway"

/** Statements are short and run every 2 seconds, so that silence is noticed soon. */
const timeouts: Timeouts = { statementMillis: 3000, silenceMillis: 4000 }

/** The longest wait for the pool when it substitutes for the connection. */
const poolTimeout = Duration.seconds(2)

const reconnectDelay = Duration.millis(500)

/** Opens the connection before it returns, and reopens it whenever it is lost. */
export const layer = (url: Redacted.Redacted) =>
  Layer.effect(
    DirectConnection,
    Effect.gen(function* () {
      const pool = yield* PgClient.PgClient
      const session = sessionOf(url, yield* addressOf(url), { timeouts })
      const handlers: Array<(payload: string) => void> = []
      const tried = yield* Deferred.make<void>()
      let current: PgConnection.PgConnection | undefined
      let isLost = false
      let isUnanswered = false

      const connected = Effect.gen(function* () {
        // Pinned, because a listener would block all other statements
        const connection = yield* Effect.flatMap(PgConnection.make(session), ({ pin }) => pin)
        isUnanswered = true
        const notifications = yield* connection.listen(notificationChannel)
        isUnanswered = false
        yield* Effect.acquireRelease(
          Effect.sync(() => (current = connection)),
          () => Effect.sync(() => (current = undefined))
        )
        isLost = false
        yield* Deferred.succeed(tried, undefined)
        // Fails when the connection is lost
        return yield* Effect.forever(
          Effect.map(Queue.take(notifications), ({ payload }) => {
            for (const handle of handlers) handle(payload)
          })
        )
      }).pipe(Effect.scoped)
      yield* connected.pipe(
        Effect.catchCause((cause) => {
          // Logged as a warning only once per outage
          const log = isLost ? Effect.logDebug : Effect.logWarning
          isLost = true
          const why = connectionTrouble(Cause.squash(cause), isUnanswered)
          isUnanswered = false
          return log(
            `The direct connection is lost: ${why}. Heartbeats use the pool, and changes by other processes are noticed later`,
            cause
          )
        }),
        Effect.andThen(Deferred.succeed(tried, undefined)),
        Effect.repeat(Schedule.spaced(reconnectDelay)),
        Effect.forkScoped
      )
      yield* Deferred.await(tried)

      const onPool = (statement: string, parameters: ReadonlyArray<unknown>) =>
        pool.unsafe<object>(statement, parameters).pipe(
          storeFailures,
          Effect.timeoutOrElse({
            duration: poolTimeout,
            orElse: () => Effect.fail(new StoreUnavailable({ cause: "no connection is free" }))
          })
        )
      return Option.some({
        query: (statement, parameters) =>
          Effect.suspend(() =>
            current === undefined
              ? onPool(statement, parameters)
              : current.query(statement, parameters).pipe(
                  Effect.map(({ rows }) => rows),
                  storeFailures,
                  Effect.catch(() => onPool(statement, parameters))
                )
          ),
        onNotification: (handler) => {
          handlers.push(handler)
        },
        isOpen: () => current !== undefined
      } satisfies DirectConnection)
    })
  )
