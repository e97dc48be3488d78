import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { DirectConnection } from "./DirectConnection.ts"
import { rowOf, Time } from "./Rows.ts"
import { storeFailures } from "./StoreFailures.ts"

/**
 * The clock by which processes judge each other: for leases and heartbeats. Due times use `Clock`. Defaults to `Clock`,
 * for a store that only one process opens, and for tests. ADR 0176.
 */
export const DatabaseClock = Context.Reference<{
  readonly now: Effect.Effect<DateTime.Utc, StoreUnavailable>
  /** The time as a parameter of a statement; `None` if the statement asks the server. */
  readonly asParameter: Effect.Effect<Option.Option<DateTime.Utc>>
}>("gateway/db/DatabaseClock", { defaultValue: () => local })

const local = { now: DateTime.now, asParameter: Effect.asSome(DateTime.now) }

const Now = Schema.Struct({ now: Time })

/** The server's clock, if there is a direct connection. */
export const layer = Layer.effect(
  DatabaseClock,
  Effect.map(
    DirectConnection,
    Option.match({
      onNone: () => local,
      onSome: ({ query }) => ({
        now: query("SELECT clock_timestamp() AS now", []).pipe(
          rowOf(Now),
          storeFailures,
          Effect.map(({ now }) => now)
        ),
        asParameter: Effect.succeedNone
      })
    })
  )
)
