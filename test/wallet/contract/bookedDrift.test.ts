import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { readFileSync } from "node:fs"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { describeStores } from "../../support/stores.ts"
import { accept, breachesOf, finish, newWallet, walletStores } from "../../support/wallets.ts"

const page = readFileSync("docs/operating.md", "utf8")
const [, runbook = ""] = page.split("### GatewayMoneyDrift\n")
const [, lines = ""] = /```sql\nBEGIN;\n([^`]+)COMMIT;\n```/u.exec(runbook) ?? []

const auditOnce = Effect.gen(function* () {
  const wallets = yield* WalletStore
  const now = yield* DateTime.now
  yield* wallets.audit({ after: Option.none(), wallets: 100, entries: 1000, now })
  return yield* wallets.drift
})

/** docs/operating.md#gatewaymoneydrift */
describeStores("a wallet that was changed outside its ledger", (database) => {
  layer(Layer.provideMerge(walletStores, database), { timeout: "60 seconds" })((it) => {
    it.effect("matches the ledger after the lines of the runbook, and stays so", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const userId = yield* newWallet(20)
        yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`SET LOCAL session_replication_role = replica`.unprepared
            yield* sql`UPDATE wallets SET settled = settled + 3000000 WHERE user_id = ${userId}`
          })
        )
        const { taskId } = yield* accept(userId, 5)
        assert.strictEqual(yield* auditOnce, 1)
        const book = Effect.forEach(
          lines.split(/;\n/u).filter((line) => line !== ""),
          (line) => sql.unsafe(line.replaceAll(":'user'", `'${userId}'`)).unprepared
        )
        yield* sql.withTransaction(book)
        assert.strictEqual(yield* auditOnce, 0)
        yield* finish(taskId, 5)
        assert.strictEqual(yield* auditOnce, 0)
        assert.strictEqual(yield* breachesOf(userId), 0)
        // Repeated, they change nothing
        yield* sql.withTransaction(book)
        assert.strictEqual(yield* auditOnce, 0)
        const [wallet] = yield* sql`
          SELECT settled, entry_count AS n FROM wallets WHERE user_id = ${userId}`
        assert.deepStrictEqual({ ...wallet }, { settled: 18_000_000n, n: 4n })
      })
    )
  })
})
