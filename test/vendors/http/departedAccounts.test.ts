import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { afterAll, beforeEach } from "vitest"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { Accounts } from "../../../src/vendors/accounts/Accounts.ts"
import {
  advance,
  callWith,
  eventually,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"
import { startedDatabase } from "../../support/stores.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"

/** docs/reference/vendors.md#accounts-that-leave, ADR 0186 */

const first = await Upstream.start(dashscope)
const second = await Upstream.start(dashscope)
beforeEach(() => {
  for (const vendor of [first, second]) vendor.reset()
})
afterAll(() => Promise.all([first.close(), second.close()]))

const path = "/vendors/alibaba/v1/text-to-image-preview/generation"
const body = { prompt: "A lighthouse", n: 1 }
const one = `${first.key};name=one;concurrent=1;polls=17;weight=1000;base=${first.url}`
const two = `${second.key};name=two;base=${second.url}`

const startTask = Effect.gen(function* () {
  const user = yield* makeUser()
  const made = yield* user.call("POST", path, body)
  assert.strictEqual(made.status, 202, made.text)
  return { ...user, own: `${path}/${made.json.task_info.id}` }
})

type Call = ReturnType<typeof callWith>
const reaches = Effect.fnUntraced(function* (call: Call, own: string, status: string) {
  const isOver = (at: string) => at === status || at === "failed"
  const read = Effect.andThen(advance("1 second"), call("GET", own))
  const ended = yield* eventually(read, ({ json }) => isOver(json.task_info.status))
  assert.strictEqual(ended.json.task_info.status, status, ended.text)
  return ended
})
const submitsOf = (vendor: Upstream) => vendor.paidSubmits

const storedIds = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly id: string }>`SELECT id FROM vendor_accounts ORDER BY id`
  return rows.map(({ id }) => id)
})

describe("an account that left the configuration", () => {
  /** Gateways on one store, one after the other or two at the same time. */
  const onOneStore = <E>(
    test: (
      run: <A, F, R>(
        env: Readonly<Record<string, string>>,
        work: Effect.Effect<A, F, R>
      ) => Effect.Effect<A, F>
    ) => Effect.Effect<void, E>
  ) =>
    Effect.scoped(
      Effect.flatMap(Layer.build(startedDatabase), (built) =>
        test(
          (env, work) =>
            Effect.provide(
              work,
              layerGateway({
                database: Layer.succeedContext(built),
                // The variable says that the store is shared, so that the second start does not forget the first
                env: { DATABASE_URL: "postgres://localhost/shared", ...env },
                areVendorsLive: true
              }),
              { local: true }
              // oxlint-disable-next-line typescript/no-explicit-any -- the layer has every service of a test
            ) as any
        )
      )
    )

  it.effect("finishes its jobs with its key, gets no new ones, and is then forgotten", () =>
    onOneStore(
      Effect.fnUntraced(function* (run) {
        const { key, own } = yield* run(
          { DASHSCOPE_API_KEY: one },
          Effect.gen(function* () {
            const task = yield* startTask
            yield* reaches(task.call, task.own, "processing")
            const sql = yield* SqlClient.SqlClient
            const [row] = yield* sql<{
              readonly sealed: Uint8Array
            }>`SELECT sealed FROM vendor_accounts`
            assert.isDefined(row)
            assert.notInclude(Buffer.from(row?.sealed ?? []).toString("latin1"), first.key)
            return task
          })
        )
        assert.strictEqual(submitsOf(first), 1)
        yield* run(
          { DASHSCOPE_API_KEY: two },
          Effect.gen(function* () {
            const call = callWith(key)
            const { data } = (yield* operator("GET", "/manage/v1/accounts")).json
            assert.deepStrictEqual(
              data.map(({ configured, id, status }: Record<string, unknown>) => [
                id,
                configured,
                status
              ]),
              [
                ["dashscope:two", true, "active"],
                ["dashscope:one", false, "draining"]
              ]
            )
            const kept = Option.getOrThrow((yield* Accounts).find("dashscope:one"))
            assert.deepInclude(kept, { concurrent: 1, polls: 17, weight: 1000, baseUrl: first.url })
            const refused = yield* operator("POST", "/manage/v1/accounts/dashscope:one/resume")
            assert.deepStrictEqual([refused.status, refused.json.code], [409, 2010])
            const next = yield* startTask
            yield* reaches(call, own, "completed")
            yield* reaches(next.call, next.own, "completed")
            assert.deepStrictEqual([submitsOf(first), submitsOf(second)], [1, 1])
            for (const { headers } of first.seen) {
              assert.strictEqual(headers.authorization, `Bearer ${first.key}`)
            }
            assert.deepStrictEqual(yield* storedIds, ["dashscope:one", "dashscope:two"])
          })
        )
        yield* TestClock.adjust("10 minutes")
        yield* run(
          { DASHSCOPE_API_KEY: two },
          Effect.gen(function* () {
            yield* advance("20 seconds", "5 seconds")
            assert.deepStrictEqual(yield* storedIds, ["dashscope:two"])
            assert.lengthOf((yield* operator("GET", "/manage/v1/accounts")).json.data, 1)
          })
        )
      })
    )
  )

  it.effect("is served by processes with and without it at the same time", () =>
    onOneStore(
      Effect.fnUntraced(function* (run) {
        const work = Effect.gen(function* () {
          const tasks = yield* Effect.all(Array.from({ length: 3 }, () => startTask))
          for (const { call, own } of tasks) yield* reaches(call, own, "completed")
        })
        // The outer process is older and does not know the account of the inner one
        yield* run(
          { DASHSCOPE_API_KEY: two },
          Effect.andThen(work, run({ DASHSCOPE_API_KEY: one }, Effect.andThen(work, work)))
        )
        // Whichever process claims a task submits it to its own account; any process polls it
        assert.strictEqual(submitsOf(first) + submitsOf(second), 9)
        assert.isAbove(submitsOf(first), 0)
      })
    )
  )

  it.effect("is kept while a task needs it, and its job waits if the MASTER_KEY differs", () =>
    onOneStore(
      Effect.fnUntraced(function* (run) {
        first.runningPolls = 1_000_000
        const { key, own } = yield* run(
          { DASHSCOPE_API_KEY: one },
          Effect.gen(function* () {
            const task = yield* startTask
            yield* reaches(task.call, task.own, "processing")
            return task
          })
        )
        // Longer than an unneeded account is kept
        yield* TestClock.adjust("14 minutes")
        const MASTER_KEY = Buffer.alloc(32, 9).toString("base64")
        yield* run(
          { DASHSCOPE_API_KEY: two, MASTER_KEY },
          Effect.gen(function* () {
            const asked = first.requests
            yield* advance("1 minute", "5 seconds")
            assert.strictEqual(first.requests, asked)
            assert.include(yield* storedIds, "dashscope:one")
            const task = yield* callWith(key)("GET", own)
            assert.strictEqual(task.json.task_info.status, "processing", task.text)
            const sql = yield* SqlClient.SqlClient
            const faults = yield* sql<{
              readonly remedy: string
            }>`SELECT remedy FROM vendor_faults WHERE account_id LIKE '%@dashscope:one'`
            assert.lengthOf(faults, 1)
            assert.match(faults[0]?.remedy ?? "", /restore the account in the configuration/u)
          })
        )
        yield* run(
          { DASHSCOPE_API_KEY: two },
          Effect.gen(function* () {
            first.runningPolls = 1
            yield* reaches(callWith(key), own, "completed")
            assert.deepStrictEqual([submitsOf(first), submitsOf(second)], [1, 0])
          })
        )
      })
    )
  )

  it.effect(
    "is waited for by a process without accounts, if another process had it a moment ago",
    () =>
      onOneStore(
        Effect.fnUntraced(function* (run) {
          first.submitFaults = ["429-wait"]
          const { key, own } = yield* run(
            { DASHSCOPE_API_KEY: one },
            Effect.gen(function* () {
              const task = yield* startTask
              // The clock stands still, so that the next process starts soon after this one recorded its account
              yield* eventually(
                task.call("GET", task.own),
                ({ json }) => json.task_info.status === "processing" && first.seen.length > 0
              )
              return task
            })
          )
          yield* run(
            {},
            Effect.gen(function* () {
              yield* advance("20 seconds")
              yield* reaches(callWith(key), own, "processing")
            })
          )
          yield* run({ DASHSCOPE_API_KEY: one }, reaches(callWith(key), own, "completed"))
          assert.strictEqual(submitsOf(first), 1)
        })
      )
  )

  it.effect(
    "fails its unsubmitted tasks if there is no other account, instead of simulating them",
    () =>
      onOneStore(
        Effect.fnUntraced(function* (run) {
          first.runningPolls = 1_000_000
          const [submitted, waiting] = yield* run(
            { DASHSCOPE_API_KEY: one },
            Effect.gen(function* () {
              const task = yield* startTask
              yield* reaches(task.call, task.own, "processing")
              const other = yield* startTask
              yield* advance("5 seconds")
              return [task, other] as const
            })
          )
          assert.strictEqual(submitsOf(first), 1)
          yield* run(
            {},
            Effect.gen(function* () {
              const failed = yield* reaches(callWith(waiting.key), waiting.own, "failed")
              assert.strictEqual(failed.json.task_info.error.code, 4008)
              const wallet = yield* callWith(waiting.key)("GET", "/manage/v1/wallet")
              assert.strictEqual(wallet.json.available_balance, "1000.00")
              first.runningPolls = 1
              yield* reaches(callWith(submitted.key), submitted.own, "completed")
            })
          )
          assert.strictEqual(submitsOf(first), 1)
        })
      )
  )
})

describe("a task that waits for a slot", () => {
  it.effect("of an account goes to another account if that one is drained", () =>
    Effect.gen(function* () {
      first.runningPolls = 1_000_000
      const task = yield* startTask
      yield* reaches(task.call, task.own, "processing")
      const waiting = yield* startTask
      yield* advance("20 seconds")
      assert.deepStrictEqual([submitsOf(first), submitsOf(second)], [1, 0])
      yield* operator("POST", "/manage/v1/accounts/dashscope:one/drain")
      yield* reaches(waiting.call, waiting.own, "completed")
      assert.deepStrictEqual([submitsOf(first), submitsOf(second)], [1, 1])
      const { slots } = (yield* operator("GET", "/manage/v1/accounts")).json.data[0]
      assert.deepStrictEqual(slots, { limit: 1, held: 1, waiting: 0 })
      first.runningPolls = 1
      yield* reaches(task.call, task.own, "completed")
    }).pipe(
      Effect.provide(
        layerGateway({
          env: { DASHSCOPE_API_KEY: `${one},${two}` },
          areVendorsLive: true
        })
      )
    )
  )
})
