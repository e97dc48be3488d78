import { assert, describe, it } from "@effect/vitest"
import { Clock, DateTime, Duration, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TaskId } from "../../../src/domain/Ids.ts"
import { Drain } from "../../../src/process/Drain.ts"
import { Hints } from "../../../src/process/signals/Hints.ts"
import { Callbacks } from "../../../src/tasks/callbacks/Callbacks.ts"
import type { Progress, VendorAccount } from "../../../src/vendors/VendorClient.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const second = Effect.map(Clock.currentTimeMillis, (now) => now / 1000)

const images: Progress = {
  _tag: "Done",
  result: {
    items: [{ _tag: "Bytes", bytes: new Uint8Array([1, 2, 3]), mime: "image/png" }]
  }
}

/** A vendor that calls back and whose polls take a second. Records when they begin. */
const vendor = () => {
  const polls: Array<number> = []
  const account: Partial<VendorAccount> = {
    accountId: "fal:own",
    submit: () =>
      Effect.succeed({
        _tag: "Accepted",
        handle: { job: "j1" },
        pollAfter: Duration.seconds(3)
      }),
    poll: () =>
      Effect.gen(function* () {
        polls.push(yield* second)
        yield* Effect.sleep("1 second")
        return polls.length === 1
          ? ({ _tag: "Running", pollAfter: Duration.minutes(1) } as const)
          : images
      }),
    callbacks: {
      keys: { _tag: "OfAccount", fetch: Effect.succeed(["key"]) },
      readSignature: ({ body }) => ({ signedAtSeconds: 3, message: body, signatures: [body] }),
      verify: () => true
    }
  }
  return { account, polls }
}

/** The vendor calls back now. */
const call = (id: string, account: Partial<VendorAccount>) =>
  Effect.flatMap(Callbacks, ({ accept }) =>
    accept(
      { taskId: TaskId.make(id), account: account as VendorAccount },
      { headers: {}, body: new Uint8Array([1]) }
    )
  )

const createTask = Effect.gen(function* () {
  const user = yield* makeUser()
  const created = yield* user.call("POST", path, { prompt: "x" })
  assert.strictEqual(created.status, 202, created.text)
  return String(created.json.task_info.id)
})

describe("a vendor's callback", () => {
  const busy = vendor()
  it.effect("during a poll causes another poll soon after it", () =>
    Effect.gen(function* () {
      const id = yield* createTask
      yield* eventually(advance("500 millis", "100 millis"), () => busy.polls.length === 1)
      yield* call(id, busy.account)
      yield* advance("3 seconds", "100 millis")
      const [first, again] = busy.polls
      assert.isAtLeast(again ?? Infinity, first! + 1)
      assert.isAtMost(again ?? Infinity, first! + 2.2)
    }).pipe(Effect.provide(layerGateway({ vendor: busy.account })))
  )

  const drained = vendor()
  const hinted: Array<string> = []
  const hints = Layer.succeed(Hints, {
    publishUnsafe: (topic: string, key: string) => void hinted.push(`${topic} ${key}`),
    subscribe: () => {}
  })
  it.effect("at a draining process tells the others that the task is due", () =>
    Effect.gen(function* () {
      const id = yield* createTask
      const sql = yield* SqlClient.SqlClient
      yield* eventually(
        Effect.andThen(
          advance("100 millis", "100 millis"),
          sql`SELECT 1 FROM runs WHERE owner IS NULL`
        ),
        (rows) => rows.length === 1
      )
      yield* (yield* Drain).begin
      hinted.length = 0
      yield* call(id, drained.account)
      assert.deepStrictEqual(hinted, [`run ${id}`])
      const now = DateTime.toDateUtc(yield* DateTime.now)
      assert.strictEqual((yield* sql`SELECT 1 FROM runs WHERE due_at <= ${now}`).length, 1)
    }).pipe(
      Effect.provide(layerGateway({ vendor: drained.account }).pipe(Layer.provideMerge(hints)))
    )
  )
})
