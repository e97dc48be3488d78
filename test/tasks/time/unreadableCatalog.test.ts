import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { writeFileSync } from "node:fs"
import { acceptingVendor, onePicture } from "../../support/acceptedJobs.ts"
import { catalogFile } from "../../support/aliases.ts"
import {
  adminToken,
  advance,
  eventually,
  GatewayHttp,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"

/** docs/catalog.md#a-catalog-that-cannot-be-read, ADR 0255 */

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

/** Changes the stored text of all catalogs that are not adopted. */
const rewrite = (from: string, to: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* Effect.andThen(
      sql`SET LOCAL session_replication_role = replica`,
      sql`UPDATE catalogs SET text = replace(text, ${from}, ${to})
        WHERE id <> (SELECT catalog_id FROM catalog_adoptions ORDER BY id DESC LIMIT 1)`
    ).pipe(sql.withTransaction)
  })

const spoil = rewrite('"price"', '"prize"')
const repair = rewrite('"prize"', '"price"')

/** A gateway whose vendor has one slot. Its tasks are accepted with a catalog that is then replaced. */
const gateway = (env: Record<string, string> = {}) => {
  const { asked, vendor } = acceptingVendor(() => onePicture)
  const file = catalogFile({})
  const replace = Effect.suspend(() => {
    const price = { per: "image", amount: "9.00" }
    writeFileSync(file, JSON.stringify({ change: { "text-to-image-max": { price } } }))
    return operator("POST", "/manage/v1/catalog/reload")
  })
  return { asked, replace, layer: layerGateway({ vendor, env: { CATALOG_FILE: file, ...env } }) }
}

const create = Effect.gen(function* () {
  const user = yield* makeUser()
  const created = yield* user.call("POST", path, { prompt: "x" })
  assert.strictEqual(created.status, 202, created.text)
  const task = `${path}/${created.json.task_info.id}`
  const info = Effect.map(user.call("GET", task), ({ json }) => json.task_info)
  const wallet = Effect.map(user.call("GET", "/manage/v1/wallet"), ({ json }) => json)
  return { user, info, wallet }
})

describe("a task whose catalog can no longer be read", () => {
  it.effect(
    "waits while its job is at the vendor, and ends once the catalog can be read again",
    () => {
      const { asked, layer, replace } = gateway()
      return Effect.gen(function* () {
        const { info, user, wallet } = yield* create
        yield* advance("1 second", "100 millis")
        yield* eventually(info, () => asked.submits === 1)
        assert.strictEqual((yield* replace).status, 200)
        yield* spoil
        yield* advance("3 minutes", "20 seconds")
        assert.strictEqual((yield* info).status, "processing")
        assert.strictEqual((yield* wallet).held_balance, "7.50")
        assert.deepStrictEqual(asked, { submits: 1, polls: 0, cancels: 0 })
        const metrics = yield* (yield* GatewayHttp).fetch("/metrics", {
          headers: { authorization: `Bearer ${adminToken}` }
        })
        assert.match(
          yield* Effect.promise(() => metrics.text()),
          /^gateway_vendor_operator_faults_total\{(?=.*account="scripted").*cause="catalog".*\} [1-9]/mu
        )
        const other = yield* user.call("POST", `${path}?dry_run=true`, { prompt: "y" })
        assert.deepStrictEqual([other.status, other.json.quote.amount], [200, "9.00"])
        yield* repair
        yield* advance("80 seconds", "20 seconds")
        yield* eventually(info, ({ status }) => status === "completed")
        assert.strictEqual((yield* wallet).settled_balance, "992.50")
        assert.strictEqual(asked.submits, 1)
      }).pipe(Effect.provide(layer))
    }
  )

  it.effect("fails with 4005 at its deadline, which releases the hold and cancels the job", () => {
    const { asked, layer, replace } = gateway({ TASK_DEADLINE: "5 minutes" })
    return Effect.gen(function* () {
      const { info, wallet } = yield* create
      yield* advance("1 second", "100 millis")
      yield* eventually(info, () => asked.submits === 1)
      yield* replace
      yield* spoil
      yield* advance("320 seconds", "20 seconds")
      const ended = yield* eventually(info, ({ status }) => status === "failed")
      assert.strictEqual(ended.error.code, 4005)
      assert.strictEqual((yield* wallet).held_balance, "0.00")
      assert.deepStrictEqual(asked, { submits: 1, polls: 0, cancels: 1 })
    }).pipe(Effect.provide(layer))
  })
})
