import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { DateTime, Effect, Option } from "effect"
import type { UserId } from "../../../src/domain/Ids.ts"
import type { AcceptOutcome } from "../../../src/tasks/TaskStore.ts"
import { describeLive } from "../../support/stores.ts"
import {
  accept,
  breachesOf,
  callKeyOf,
  credits,
  newCaller,
  newTaskId,
  subscribe,
  walletStores
} from "../../support/wallets.ts"

const more = (count: number) => Array.from({ length: count }, newTaskId)

const counts = Effect.fnUntraced(function* (user: UserId) {
  const sql = yield* PgClient.PgClient
  const [row] = yield* sql<{ readonly all: ReadonlyArray<number> }>`
    SELECT array[
      (SELECT count(*) FROM tasks WHERE user_id = ${user}), (SELECT count(*) FROM holds WHERE user_id = ${user}),
      (SELECT count(*) FROM events WHERE user_id = ${user}),
      (SELECT count(*) FROM deliveries WHERE user_id = ${user})]::integer[] AS all`
  assert.strictEqual(yield* breachesOf(user), 0)
  return row?.all
})

const named = ({ outcome }: { readonly outcome: AcceptOutcome }) => outcome._tag

/** docs/reference/shapes.md#several-images */
describeLive("tasks that are created together", walletStores, (it) => {
  it.effect("are all accepted or none, each with its hold and its event", () =>
    Effect.gen(function* () {
      const user = yield* newCaller(29)
      yield* subscribe(user, ["task.created"])
      const [refused, neighbor] = yield* Effect.all(
        [accept(user, 10, {}, more(2)), accept(user, 2)],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual([named(refused), named(neighbor)], ["BalanceTooLow", "Accepted"])
      assert.deepStrictEqual(yield* counts(user), [1, 1, 1, 1])
      const { outcome } = yield* accept(user, 9, {}, more(2))
      assert.deepInclude(outcome, { _tag: "Accepted", balance: credits(0) })
      assert.deepStrictEqual(yield* counts(user), [4, 4, 4, 4])
    })
  )

  it.effect("count against the limits of the key together", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const user = yield* newCaller(1000)
      const apiKeyId = callKeyOf(user)
      yield* sql`UPDATE wallets SET key_limits = true WHERE user_id = ${user}`
      yield* sql`
        UPDATE api_keys SET spend_limit = ${String(credits(25))}, spend_reset = 'never' WHERE id = ${apiKeyId}`
      yield* sql`
        INSERT INTO key_budgets (api_key_id, epoch, since, spent, held)
        VALUES (${apiKeyId}, 1, ${DateTime.toDateUtc(yield* DateTime.now)}, 0, 0)`
      const create = (count: number, runningMax = 0) =>
        accept(user, 10, { apiKeyId, runningMax }, more(count - 1))
      assert.strictEqual(named(yield* create(3)), "OverSpendLimit")
      assert.strictEqual(named(yield* create(2, 1)), "TooManyRunning")
      const { outcome } = yield* create(2, 2)
      assert.deepInclude(outcome, { _tag: "Accepted", left: credits(5) })
      assert.strictEqual((yield* counts(user))?.[0], 2)
    })
  )

  it.effect("each count against the request rates of the key and of its user", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const user = yield* newCaller(1000)
      const apiKeyId = callKeyOf(user)
      const buckets = [apiKeyId, `user:${user}`]
      for (const bucket of buckets) {
        yield* sql`
          INSERT INTO request_buckets (api_key_id, tokens, admitted, filled_at)
          VALUES (${bucket}, 5, true, ${DateTime.toDateUtc(yield* DateTime.now)})`
      }
      const tokens = Effect.map(
        sql<{ readonly tokens: number }>`
          SELECT tokens FROM request_buckets WHERE api_key_id IN ${sql.in(buckets)}`,
        (rows) => rows.map((row) => row.tokens)
      )
      assert.strictEqual(named(yield* accept(user, 1, { apiKeyId })), "Accepted")
      // The request itself was counted when it was admitted
      assert.deepStrictEqual(yield* tokens, [5, 5])
      assert.strictEqual(named(yield* accept(user, 1, { apiKeyId }, more(9))), "Accepted")
      assert.deepStrictEqual(yield* tokens, [-4, -4])
      assert.strictEqual(named(yield* accept(user, 900, { apiKeyId }, more(2))), "BalanceTooLow")
      assert.deepStrictEqual(yield* tokens, [-4, -4])
    })
  )

  it.effect("have one idempotency record, with their total cost", () =>
    Effect.gen(function* () {
      const user = yield* newCaller(100)
      const idempotency = Option.some({
        key: "order",
        requestHash: new Uint8Array([1]),
        responseBody: "{}",
        since: DateTime.subtract(yield* DateTime.now, { hours: 24 })
      })
      const both = yield* Effect.all(
        [1, 2].map(() => accept(user, 10, { idempotency }, more(2))),
        { concurrency: "unbounded" }
      )
      assert.sameMembers(both.map(named), ["Accepted", "Replayed"])
      for (const { outcome } of both) assert.deepInclude(outcome, { balance: credits(70) })
      const replayed = both.find((it) => named(it) === "Replayed")?.outcome
      assert.deepInclude(replayed, { cost: credits(30) })
      assert.deepStrictEqual((yield* counts(user))?.slice(0, 2), [3, 3])
    })
  )
})
