import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import type { UserId } from "../../../src/domain/Ids.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { describeStores } from "../../support/stores.ts"
import { accept, newWallet, walletStores } from "../../support/wallets.ts"

/** docs/reference/vendor-batches.md#anthropics-form */
const soon = DateTime.makeUnsafe("2026-11-27T01:00:00Z")
const later = DateTime.makeUnsafe("2099-12-27T00:00:00Z")

const addFile = Effect.fnUntraced(function* (
  userId: UserId,
  id: string,
  isDeleted = false,
  expiresAt = soon
) {
  const sql = yield* PgClient.PgClient
  yield* sql`
    INSERT INTO files (id, user_id, purpose, filename, bytes, created_at, expires_at, deleted_at)
    VALUES (${id}, ${userId}, 'batch', '', 1, to_timestamp(0), ${DateTime.toDateUtc(expiresAt)},
      ${isDeleted ? DateTime.toDateUtc(soon) : null})`
})

const expiryOf = (id: string) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const [row] = yield* sql<{ at: string }>`
      SELECT to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS at FROM files WHERE id = ${id}`
    return row?.at
  })

describeStores("the file that an accepted task reads", (database) => {
  liveLayer(Layer.provideMerge(walletStores, database))((it) => {
    it.effect(
      "is kept longer in the same transaction, unless it is deleted or another user's",
      () =>
        Effect.gen(function* () {
          const [userId, other] = [yield* newWallet(10), yield* newWallet(10)]
          const files = ["kept", "own", "refused", "deleted", "another's"]
          for (const id of files) {
            yield* addFile(id === "another's" ? other : userId, id, id === "deleted")
          }
          const create = (id: string, price = 1) =>
            accept(userId, price, { body: { input_file_id: id }, fileUntil: later })
          const outcomes = [
            yield* create("kept"),
            yield* accept(userId, 1, { body: { input_file_id: "own" } }),
            yield* create("refused", 11),
            yield* create("deleted"),
            yield* create("another's")
          ]
          assert.deepStrictEqual(
            outcomes.map(({ outcome }) => outcome._tag),
            ["Accepted", "Accepted", "BalanceTooLow", "Accepted", "Accepted"]
          )
          const early = DateTime.formatIso(soon)
          assert.deepStrictEqual(yield* Effect.forEach(files, expiryOf), [
            DateTime.formatIso(later),
            early,
            early,
            early,
            early
          ])
        })
    )

    it.effect("must exist when its batch is accepted, because its removal counts on that", () =>
      Effect.gen(function* () {
        const [userId, other] = [yield* newWallet(2), yield* newWallet(2)]
        yield* addFile(userId, "of a batch", false, later)
        yield* addFile(userId, "deleted meanwhile", true, later)
        yield* addFile(userId, "expired meanwhile", false, soon)
        yield* addFile(other, "of another user", false, later)
        const files = [
          "of a batch",
          "deleted meanwhile",
          "expired meanwhile",
          "of another user",
          "removed"
        ]
        const outcomes = yield* Effect.forEach(files, (id) =>
          accept(userId, 1, { resultKind: "batches", body: { input_file_id: id } })
        )
        assert.deepStrictEqual(
          outcomes.map(({ outcome }) => outcome._tag),
          ["Accepted", "FileGone", "FileGone", "FileGone", "FileGone"]
        )
        // A refusal holds nothing
        const { outcome } = yield* accept(userId, 1)
        assert.strictEqual(outcome._tag, "Accepted")
      })
    )
  })
})
