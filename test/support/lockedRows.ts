import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { whileLocked } from "./upgrade.ts"

/**
 * Runs an effect beside a transaction that has locked the rows of this query. Fails if the effect waits for them.
 * Needs two connections, which the embedded store does not have.
 */
export const besideLocked = <A, E, R>(rows: string, use: Effect.Effect<A, E, R>) =>
  Effect.flatMap(SqlClient, (sql) =>
    whileLocked(
      sql,
      `${rows} FOR UPDATE`,
      sql.withTransaction(Effect.andThen(sql`SET LOCAL lock_timeout = '2s'`, use))
    )
  )
