import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import type { UserId } from "../../../src/domain/Ids.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { besideLocked } from "../../support/lockedRows.ts"
import { describeStores } from "../../support/stores.ts"
import {
  accept,
  breaches,
  callKeyOf,
  credits,
  finish,
  ledgerOf,
  newCaller,
  newTaskId,
  newWallet,
  walletStores
} from "../../support/wallets.ts"

const refused = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.exit(effect), (exit) => exit._tag === "Failure")

const auditOnce = Effect.fnUntraced(function* (entries = 1000) {
  const wallets = yield* WalletStore
  const now = yield* DateTime.now
  let after = Option.none<UserId>()
  do {
    after = (yield* wallets.audit({ after, wallets: 3, entries, now })).last
  } while (Option.isSome(after))
  return yield* wallets.drift
})

/** Runs without constraints and triggers, like a manual change of the database. */
const manipulate = (statement: string) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`SET LOCAL session_replication_role = replica`
        yield* sql.unsafe(statement)
      })
    )
  })

describeStores("the wallet store", (database, kind) => {
  liveLayer(Layer.provideMerge(walletStores, database))((it) => {
    it.effect(
      "holds the price at create, settles the results at success, and releases the rest",
      () =>
        Effect.gen(function* () {
          const wallets = yield* WalletStore
          const userId = yield* newWallet(100)
          const first = yield* accept(userId, 12)
          assert.deepInclude(first.outcome, { _tag: "Accepted", balance: credits(88) })
          const held = Option.getOrThrow(yield* wallets.find(userId))
          assert.deepInclude(held, { settled: credits(100), held: credits(12) })
          assert.deepInclude(yield* finish(first.taskId, 9), { _tag: "Finished" })
          const after = Option.getOrThrow(yield* wallets.find(userId))
          assert.deepInclude(after, { settled: credits(91), held: credits(0) })
          assert.deepInclude(yield* finish(first.taskId, 9), { _tag: "Fenced" })
          assert.strictEqual(yield* breaches, 0)
          const operations = (yield* ledgerOf(userId)).map((entry) => entry.operationId)
          assert.deepStrictEqual(operations, [
            `top_up:${userId}:first`,
            `hold:${first.taskId}`,
            `capture:${first.taskId}`,
            `release:${first.taskId}`
          ])
        })
    )

    if (kind === "postgres") {
      it.effect("ends a failed task without waiting for media that are being removed", () =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          const userId = yield* newWallet(20)
          const { taskId } = yield* accept(userId, 5)
          yield* sql`
            INSERT INTO artifacts (id, user_id, task_id, role, mime, bytes, sha256, created_at, expires_at)
            VALUES (${`art_${taskId}`}, ${userId}, ${taskId}, 'input', 'image/png', 1, '', now(), now())`
          const media = `SELECT FROM artifacts WHERE task_id = '${taskId}'`
          assert.deepInclude(yield* besideLocked(media, finish(taskId, undefined)), {
            _tag: "Finished"
          })
        })
      )
    }

    it.effect("fails only the refused or broken call of a batch", () =>
      Effect.gen(function* () {
        const userId = yield* newWallet(20)
        const [rich] = [yield* newWallet(1000)]
        const one = yield* accept(userId, 1)
        const outcomes = yield* Effect.all(
          [
            accept(userId, 15),
            accept(userId, 5),
            accept(rich, 5),
            // A text that jsonb cannot contain
            Effect.exit(accept(userId, 1, { body: { prompt: "\u0000" } })),
            accept(userId, 4),
            accept(newTaskId() as never, 1),
            accept(userId, 1, { taskId: one.taskId })
          ],
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          outcomes.map((it) => ("outcome" in it ? it.outcome._tag : it._tag)),
          [
            "Accepted",
            "BalanceTooLow",
            "Accepted",
            "Failure",
            "Accepted",
            "BalanceTooLow",
            "Accepted"
          ]
        )
        assert.strictEqual(yield* breaches, 0)
      })
    )

    it.effect(
      "allows a key at most its limit of unfinished tasks, however many arrive at once",
      () =>
        Effect.gen(function* () {
          const userId = yield* newWallet(100)
          const over = { apiKeyId: `key_${userId}`, runningMax: 3 }
          const all = yield* Effect.all(
            Array.from({ length: 12 }, () => accept(userId, 1, over)),
            { concurrency: "unbounded" }
          )
          const accepted = all.filter(({ outcome }) => outcome._tag === "Accepted")
          assert.strictEqual(accepted.length, 3)
          const others = all.filter(({ outcome }) => outcome._tag === "TooManyRunning")
          assert.strictEqual(others.length, 9)
          assert.strictEqual((yield* accept(userId, 1)).outcome._tag, "Accepted", "another key")
          yield* finish(accepted[0]!.taskId, 1)
          assert.strictEqual((yield* accept(userId, 1, over)).outcome._tag, "Accepted")
          assert.strictEqual(yield* breaches, 0)
        })
    )

    it.effect.each([
      ["revoked", "revoked_at"],
      ["disabled", "disabled_at"],
      ["expired", "expires_at"]
    ] as const)("creates no task for a key that is %s", ([how, column]) =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const userId = yield* newCaller(100)
        const apiKeyId = callKeyOf(userId)
        yield* sql`UPDATE api_keys SET ${sql(column)} = '2020-01-01' WHERE id = ${apiKeyId}`
        const { outcome } = yield* accept(userId, 12, { apiKeyId })
        assert.deepStrictEqual(outcome, { _tag: "KeyEnded", how })
      })
    )

    it.effect("creates tasks for a secret until it is replaced or its grace period ends", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const userId = yield* newCaller(100)
        const apiKeyId = callKeyOf(userId)
        const now = yield* DateTime.now
        const outcomes = Effect.forEach([0, 1, 2], (rotation) =>
          Effect.map(accept(userId, 1, { apiKeyId, rotation, now }), ({ outcome }) =>
            outcome._tag === "KeyEnded" ? outcome.how : outcome._tag
          )
        )
        const rotate = (until: DateTime.Utc | null) => sql`
          UPDATE api_keys SET rotations = 2, previous_key_until = ${until && DateTime.toDateUtc(until)}
          WHERE id = ${apiKeyId}`
        yield* rotate(DateTime.add(now, { seconds: 1 }))
        assert.deepStrictEqual(yield* outcomes, ["replaced", "Accepted", "Accepted"])
        for (const ended of [now, null]) {
          yield* rotate(ended)
          assert.deepStrictEqual(yield* outcomes, ["replaced", "replaced", "Accepted"])
        }
      })
    )

    it.effect("refuses a capture above the hold, which changes nothing", () =>
      Effect.gen(function* () {
        const userId = yield* newWallet(20)
        const { taskId } = yield* accept(userId, 5)
        assert.isTrue(yield* refused(finish(taskId, 6)))
        assert.isTrue(yield* refused(finish(taskId, -1)))
        assert.strictEqual((yield* ledgerOf(userId)).length, 2)
        assert.strictEqual(yield* breaches, 0)
        assert.deepInclude(yield* finish(taskId, 5), { _tag: "Finished" })
      })
    )

    it.effect(
      "allows an operation id for one change only, and refuses balances too high or too low",
      () =>
        Effect.gen(function* () {
          const wallets = yield* WalletStore
          const userId = yield* newWallet(20)
          yield* accept(userId, 5)
          const now = yield* DateTime.now
          const add = (
            kind: "top_up" | "adjustment",
            amount: number,
            operationId: string,
            over: { readonly userId?: UserId; readonly note?: string } = {}
          ) =>
            wallets.add({
              userId,
              kind,
              amount: credits(amount),
              operationId,
              note: "n",
              traceId: "",
              now,
              ...over
            })
          assert.deepInclude(yield* add("top_up", 5, "a"), { _tag: "Added", repeated: false })
          const again = yield* add("top_up", 5, "a")
          assert.deepInclude(again, { _tag: "Added", repeated: true })
          assert.strictEqual((yield* add("top_up", 6, "a"))._tag, "Reused")
          assert.strictEqual((yield* add("adjustment", 5, "a"))._tag, "Reused")
          assert.strictEqual((yield* add("top_up", 5, "a", { note: "other" }))._tag, "Reused")
          const other = { userId: yield* newWallet(20) }
          assert.strictEqual((yield* add("top_up", 5, "a", other))._tag, "Reused")
          assert.strictEqual((yield* add("adjustment", -20.01, "b"))._tag, "BelowHeld")
          assert.strictEqual((yield* add("adjustment", -20, "b"))._tag, "Added")
          assert.strictEqual((yield* add("top_up", 9_000_000_000_000, "c"))._tag, "TooMuch")
          const unknownUser = { userId: newTaskId() as never, operationId: "d" }
          const none = yield* wallets.add({
            ...unknownUser,
            kind: "top_up",
            amount: credits(1),
            note: null,
            traceId: "",
            now
          })
          assert.strictEqual(none._tag, "NoWallet")
          assert.strictEqual(yield* breaches, 0)
        })
    )

    it.effect("refuses in the database every change that breaks an invariant", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const userId = yield* newWallet(20)
        const { taskId } = yield* accept(userId, 5)
        const entry = (values: string) =>
          sql.unsafe(`INSERT INTO wallet_entries (user_id, seq, kind, amount, settled_after, held_after,
            operation_id, subject_id, created_at, state_after, threshold_after) VALUES ${values}`)
        const statements = [
          sql`UPDATE wallets SET settled = settled + 1 WHERE user_id = ${userId}`,
          sql`UPDATE wallets SET held = 0 WHERE user_id = ${userId}`,
          sql`UPDATE wallets SET held = settled + 1 WHERE user_id = ${userId}`,
          sql.unsafe(`WITH entry AS (
              INSERT INTO wallet_entries (user_id, seq, kind, amount, settled_after, held_after, operation_id,
                subject_id, created_at)
              VALUES ('${userId}', 3, 'capture', 1, 1, 2, 'capture:${taskId}', '${taskId}', now()))
            UPDATE wallets SET settled = 1, held = 2, entry_count = 3 WHERE user_id = '${userId}'`),
          sql`UPDATE wallets SET entry_count = entry_count + 1 WHERE user_id = ${userId}`,
          sql`UPDATE wallet_entries SET amount = 1 WHERE user_id = ${userId}`,
          sql`DELETE FROM wallet_entries WHERE user_id = ${userId}`,
          sql`TRUNCATE wallet_entries`,
          sql`UPDATE holds SET amount = -1 WHERE id = ${taskId}`,
          sql`UPDATE tasks SET captured = price + 1 WHERE id = ${taskId}`,
          sql`INSERT INTO holds VALUES (${newTaskId()}, ${newTaskId()}, 'call', 1, now())`,
          entry(`('${userId}', 3, 'top_up', -1, 20, 0, 'x', null, now(), 'NORMAL', 1)`),
          entry(`('${userId}', 3, 'adjustment', 0, 20, 0, 'x', null, now(), 'NORMAL', 1)`),
          entry(
            `('${userId}', 3, 'capture', 1, 1, -1, 'capture:${taskId}', '${taskId}', now(), null, null)`
          ),
          entry(
            `('${userId}', 3, 'late_charge', 0, 1, 0, 'late_charge:${taskId}', '${taskId}', now(), null, null)`
          ),
          entry(`('${userId}', 3, 'capture', 1, 3, 2, 'another', '${taskId}', now(), null, null)`),
          entry(
            `('${userId}', 3, 'hold', 1, 3, 2, 'hold:${taskId}', '${taskId}', now(), null, null)`
          )
        ]
        for (const [index, statement] of statements.entries()) {
          assert.isTrue(yield* refused(statement), `statement ${index} was accepted`)
        }
        assert.strictEqual(yield* breaches, 0)
      })
    )

    it.effect("finds in its audit a wallet, a hold and an entry that were changed manually", () =>
      Effect.gen(function* () {
        const users = yield* Effect.forEach(Array.from({ length: 7 }), () => newWallet(20))
        const userId = users[3]
        const { taskId } = yield* accept(userId!, 5)
        assert.strictEqual(yield* auditOnce(), 0)
        yield* manipulate(`UPDATE wallets SET settled = settled + 1 WHERE user_id = '${userId}'`)
        assert.strictEqual(yield* auditOnce(), 1)
        yield* manipulate(`UPDATE wallets SET settled = settled - 1 WHERE user_id = '${userId}'`)
        assert.strictEqual(yield* auditOnce(), 0)
        yield* manipulate(`UPDATE holds SET amount = amount + 1 WHERE id = '${taskId}'`)
        assert.strictEqual(yield* auditOnce(), 1)
        assert.deepStrictEqual(yield* (yield* WalletStore).drifting, [userId!])
        yield* manipulate(`UPDATE holds SET amount = amount - 1 WHERE id = '${taskId}'`)
        assert.strictEqual(yield* auditOnce(), 0)
        yield* finish(taskId, 5)
        const last = `user_id = '${userId}' AND seq = 3`
        yield* manipulate(
          `UPDATE wallet_entries SET settled_after = settled_after + 1 WHERE ${last}`
        )
        yield* manipulate(`UPDATE wallets SET settled = settled + 1 WHERE user_id = '${userId}'`)
        assert.strictEqual(yield* auditOnce(), 1, "wallet and entry match, but the chain does not")
        const fifth = users[4]
        yield* accept(fifth!, 1)
        yield* manipulate(`DELETE FROM wallet_entries WHERE user_id = '${fifth}' AND seq = 2`)
        assert.strictEqual(yield* auditOnce(), 2)
        yield* manipulate(`DELETE FROM wallet_audits`)
        yield* manipulate(
          `UPDATE wallet_entries SET settled_after = settled_after - 1 WHERE ${last}`
        )
        yield* manipulate(`UPDATE wallets SET settled = settled - 1 WHERE user_id = '${userId}'`)
        yield* manipulate(`DELETE FROM holds WHERE user_id = '${fifth}'`)
        yield* manipulate(`UPDATE wallets SET held = 0, entry_count = 1 WHERE user_id = '${fifth}'`)
        yield* manipulate(`DELETE FROM runs`)
        yield* manipulate(`DELETE FROM tasks WHERE user_id = '${fifth}'`)
        assert.strictEqual(yield* auditOnce(1), 0, "one entry per page")
        for (let round = 0; round < 8; round += 1) assert.strictEqual(yield* auditOnce(1), 0)
      })
    )
  })
})
