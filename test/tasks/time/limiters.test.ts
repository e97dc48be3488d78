import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Progress, Rate, SlotLimit, VendorAccount } from "../../../src/vendors/VendorClient.ts"
import { VendorError } from "../../../src/vendors/VendorError.ts"
import { advance, eventually, layerGateway, makeUser, operator } from "../../support/gateway.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

const images: Progress = {
  _tag: "Done",
  result: {
    items: [{ _tag: "Bytes", bytes: new Uint8Array([1, 2, 3]), mime: "image/png" }]
  }
}

/** A vendor whose jobs run until the test ends them. Records the submitted prompts in order. */
const vendor = (limits: {
  readonly rate?: Rate
  readonly slots?: SlotLimit
  readonly refusal?: (prompt: string, n: number) => VendorError | undefined
}) => {
  const submits: Array<string> = []
  const done = new Set<string>()
  const account: Partial<VendorAccount> = {
    rateOf: (act) => (act === "submit" ? limits.rate : undefined),
    slotsOf: () => limits.slots,
    submit: ({ body }) =>
      Effect.suspend(() => {
        const { prompt } = body as { readonly prompt: string }
        submits.push(prompt)
        const refusal = limits.refusal?.(prompt, submits.length)
        return refusal === undefined
          ? Effect.succeed({
              _tag: "Accepted" as const,
              handle: { prompt },
              pollAfter: Duration.seconds(1)
            })
          : Effect.fail(refusal)
      }),
    poll: ({ prompt }) =>
      Effect.sync((): Progress =>
        done.has(String(prompt)) ? images : { _tag: "Running", pollAfter: Duration.seconds(1) }
      )
  }
  return { account, submits, done }
}

const makeCreate = Effect.map(makeUser(), (user) => ({
  wallet: Effect.map(user.call("GET", "/manage/v1/wallet"), (it) => it.json),
  create: (prompt: string) =>
    Effect.map(user.call("POST", path, { prompt }), (created) => {
      assert.strictEqual(created.status, 202, created.text)
      const own = `${path}/${created.json.task_info.id}`
      const info = Effect.map(user.call("GET", own), (it) => it.json.task_info)
      return { info, status: Effect.map(info, (it) => it.status), cancel: user.call("DELETE", own) }
    })
}))

/** Waits for the result, which is stored in real time while the test's clock advances. */
const completed = <E, R>({ status }: { readonly status: Effect.Effect<string, E, R> }) =>
  eventually(Effect.andThen(advance("1 second"), status), (it) => it === "completed")

const waits: ReadonlyArray<{
  readonly what: string
  readonly limits: { readonly rate?: Rate; readonly slots?: SlotLimit }
}> = [
  {
    what: "its submit",
    limits: { rate: { key: "account/submits", calls: 1, perMillis: 3_600_000 } }
  },
  { what: "a slot at the vendor", limits: { slots: { line: "account", max: 1 } } }
]

for (const { limits, what } of waits) {
  describe(`a task that waits for ${what}`, () => {
    const cancelled = vendor(limits)
    it.effect("is pending, can be cancelled, and is never submitted", () =>
      Effect.gen(function* () {
        const { create, wallet } = yield* makeCreate
        const first = yield* create("first")
        yield* eventually(first.status, (status) => status === "processing")
        const second = yield* create("second")
        yield* advance("30 seconds")
        assert.strictEqual(yield* second.status, "pending")
        assert.strictEqual((yield* wallet).held_balance, "15.00")
        assert.strictEqual((yield* second.cancel).status, 200)
        const info = yield* second.info
        assert.strictEqual(info.status, "failed")
        assert.strictEqual(info.error.code, 4004)
        assert.strictEqual((yield* wallet).held_balance, "7.50")
        cancelled.done.add("first")
        yield* advance("30 seconds")
        yield* completed(first)
        assert.deepEqual(cancelled.submits, ["first"])
      }).pipe(Effect.provide(layerGateway({ vendor: cancelled.account })))
    )

    const late = vendor(limits)
    it.effect("fails with 4005 at its deadline without a submit, and costs nothing", () =>
      Effect.gen(function* () {
        const { create, wallet } = yield* makeCreate
        const first = yield* create("first")
        yield* eventually(first.status, (status) => status === "processing")
        // A job of another process that outlives both tasks
        const sql = yield* SqlClient.SqlClient
        yield* sql`INSERT INTO runs (task_id, owner, deadline_at, slot_key, slot_held)
          VALUES (gen_random_uuid(), NULL, '2100-01-01', 'account', true)`
        const second = yield* create("second")
        yield* advance("110 seconds", "5 seconds")
        assert.strictEqual(yield* second.status, "pending")
        yield* advance("15 seconds", "5 seconds")
        const info = yield* eventually(second.info, (it) => it.status === "failed")
        assert.strictEqual(info.error.code, 4005)
        assert.deepEqual(late.submits, ["first"])
        assert.strictEqual((yield* wallet).available_balance, "1000.00")
      }).pipe(
        Effect.provide(layerGateway({ vendor: late.account, env: { TASK_DEADLINE: "2 minutes" } }))
      )
    )
  })
}

describe("slots of an account", () => {
  const ordered = vendor({ slots: { line: "account", max: 2 } })
  it.effect("go to the oldest task when a job ends, and the others stay pending", () =>
    Effect.gen(function* () {
      const { create } = yield* makeCreate
      const prompts = ["1", "2", "3", "4", "5"]
      const tasks = yield* Effect.forEach(prompts, (prompt) =>
        Effect.tap(create(prompt), () => advance("2 seconds"))
      )
      assert.deepEqual(ordered.submits, ["1", "2"])
      assert.deepEqual(yield* Effect.forEach(tasks, ({ status }) => status), [
        "processing",
        "processing",
        "pending",
        "pending",
        "pending"
      ])
      const { text } = yield* operator("GET", "/metrics")
      assert.include(text, 'gateway_vendor_slots{line="account",state="held"} 2')
      assert.include(text, 'gateway_vendor_slots{line="account",state="waiting"} 3')
      for (const [at, prompt] of prompts.entries()) {
        ordered.done.add(prompt)
        yield* completed(tasks[at]!)
        yield* eventually(
          Effect.map(advance("1 second"), () => ordered.submits.length),
          (count) => count === Math.min(5, at + 3)
        )
      }
      assert.deepEqual(ordered.submits, prompts)
    }).pipe(Effect.provide(layerGateway({ vendor: ordered.account })))
  )

  const refused = vendor({
    slots: { line: "account", max: 1 },
    refusal: (_prompt, n) =>
      n === 1
        ? new VendorError({ class: "RATE_LIMITED", message: "later", retryAfterMillis: 60_000 })
        : undefined
  })
  it.effect("are free while a refused task waits for its next submit", () =>
    Effect.gen(function* () {
      const { create } = yield* makeCreate
      const first = yield* create("first")
      yield* eventually(first.status, (status) => status === "processing")
      const second = yield* create("second")
      yield* advance("5 seconds")
      assert.deepEqual(refused.submits, ["first", "second"])
      yield* advance("90 seconds")
      // Its wait is over while the second's job still runs
      assert.deepEqual(refused.submits, ["first", "second"])
      refused.done.add("second")
      yield* completed(second)
      yield* eventually(
        Effect.map(advance("1 second"), () => refused.submits.length),
        (count) => count === 3
      )
      assert.deepEqual(refused.submits, ["first", "second", "first"])
      refused.done.add("first")
      yield* completed(first)
    }).pipe(Effect.provide(layerGateway({ vendor: refused.account })))
  )

  const failed = vendor({
    slots: { line: "account", max: 1 },
    refusal: (prompt) =>
      prompt === "first" ? new VendorError({ class: "AMBIGUOUS", message: "lost" }) : undefined
  })
  it.effect("are free after a submit has failed permanently", () =>
    Effect.gen(function* () {
      const { create } = yield* makeCreate
      const first = yield* create("first")
      const second = yield* create("second")
      failed.done.add("second")
      yield* completed(second)
      assert.strictEqual(yield* first.status, "failed")
      assert.deepEqual(failed.submits, ["first", "second"])
    }).pipe(Effect.provide(layerGateway({ vendor: failed.account })))
  )
})
