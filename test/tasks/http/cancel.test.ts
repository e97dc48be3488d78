import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import type { Handle, SubmitRequest } from "../../../src/vendors/VendorClient.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import type { User } from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

const created = Effect.fnUntraced(function* (user: User, prompt = "a") {
  const answer = yield* user.call("POST", path, { prompt })
  assert.strictEqual(answer.status, 202, answer.text)
  return answer.json.task_info.id as string
})

const processing = (user: User, id: string) =>
  eventually(user.call("GET", `${path}/${id}`), (it) => it.json.task_info.status === "processing")

/** A vendor whose jobs never end and that records its requests. A submit of the prompt "gated" waits. */
const makeVendor = (gate: Effect.Effect<void> = Effect.void) => {
  const cancelled: Array<Handle> = []
  const polls: Array<Handle> = []
  return {
    cancelled,
    polls,
    account: {
      submit: ({ body, taskId }: SubmitRequest) =>
        Effect.as((body as { prompt: string }).prompt === "gated" ? gate : Effect.void, {
          _tag: "Accepted" as const,
          handle: { job: taskId },
          pollAfter: Duration.seconds(1)
        }),
      poll: (handle: Handle) =>
        Effect.sync(() => {
          polls.push(handle)
          return { _tag: "Running" as const, pollAfter: Duration.seconds(1) }
        }),
      cancel: (handle: Handle) =>
        Effect.sync(() => {
          cancelled.push(handle)
          return "Canceled" as const
        })
    }
  }
}

describe("DELETE on a task", () => {
  const gate = Deferred.makeUnsafe<void>()
  const vendor = makeVendor(Deferred.await(gate))
  layer(layerGateway({ vendor: vendor.account }), { timeout: "60 seconds" })((it) => {
    it.effect(
      "is 200 with the failed result 4004 as in GET and in the event, and releases the hold",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const id = yield* created(user)
          yield* processing(user, id)
          const held = yield* user.call("GET", "/manage/v1/wallet")
          assert.strictEqual(held.json.held_balance, "7.50")
          const answer = yield* user.call("DELETE", `${path}/${id}`)
          assert.strictEqual(answer.status, 200)
          assert.deepInclude(answer.json.task_info, { id, status: "failed" })
          assert.deepStrictEqual(answer.json.task_info.error, {
            code: 4004,
            title: "Cancelled",
            detail: "The task was cancelled by its owner"
          })
          assert.strictEqual(answer.headers.get("x-service-cost"), "0.00")
          assert.isFalse(answer.headers.has("retry-after"))
          const got = yield* user.call("GET", `${path}/${id}`)
          assert.deepStrictEqual(got.json, answer.json)
          const wallet = yield* user.call("GET", "/manage/v1/wallet")
          assert.deepInclude(wallet.json, { held_balance: "0.00", available_balance: "1000.00" })
          const sql = yield* SqlClient.SqlClient
          const [event] = yield* sql`SELECT convert_from(body, 'UTF8')::jsonb AS body FROM events
          WHERE task_id = ${id} AND type = 'task.failed'`
          assert.deepStrictEqual(
            (event as { body: { data: { payload: unknown } } }).body.data.payload,
            answer.json
          )
        })
    )

    it.effect("stops its polls at once and cancels the job at the vendor", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const id = yield* created(user)
        yield* processing(user, id)
        yield* advance("2 seconds")
        yield* user.call("DELETE", `${path}/${id}`)
        yield* eventually(
          Effect.sync(() => vendor.cancelled.filter((it) => it["job"] === id).length),
          (count) => count === 1
        )
        const pollsSince = () => vendor.polls.filter((it) => it["job"] === id).length
        const before = pollsSince()
        yield* advance("10 seconds")
        assert.strictEqual(pollsSince(), before)
      })
    )

    it.effect(
      "cancels the job at the vendor during its submit, as soon as the handle is known",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const id = yield* created(user, "gated")
          yield* processing(user, id)
          const answer = yield* user.call("DELETE", `${path}/${id}`)
          assert.strictEqual(answer.status, 200)
          const cancelled = () => vendor.cancelled.filter((it) => it["job"] === id).length
          assert.strictEqual(cancelled(), 0)
          const attempts = Effect.map(
            user.call("GET", `/manage/v1/tasks/${id}`),
            ({ json }) =>
              json.attempts as ReadonlyArray<{ state: string; answered_at: string | null }>
          )
          const [open] = yield* attempts
          assert.deepStrictEqual(
            [open?.state, open?.answered_at],
            ["ambiguous", null],
            "the state if the process dies now"
          )
          yield* Deferred.succeed(gate, undefined)
          yield* eventually(Effect.sync(cancelled), (count) => count === 1)
          assert.strictEqual((yield* attempts)[0]?.state, "submitted")
        })
    )

    it.effect("works only for its owner and only on its own path", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const otherUser = yield* makeUser()
        const id = yield* created(user)
        const other = "/vendors/alibaba/v1/text-to-image-preview/generation"
        for (const answer of [
          yield* otherUser.call("DELETE", `${path}/${id}`),
          yield* user.call("DELETE", `${other}/${id}`),
          yield* user.call("DELETE", `${path}/no-uuid`)
        ]) {
          assert.strictEqual(answer.status, 404)
          assert.strictEqual(answer.json.code, 2005)
        }
        const got = yield* user.call("GET", `${path}/${id}`)
        assert.notStrictEqual(got.json.task_info.status, "failed")
      })
    )

    it.effect("sent 50 times at once is 200 once and 409 for the rest, with one release", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const id = yield* created(user)
        const answers = yield* Effect.all(
          Array.from({ length: 50 }, () => user.call("DELETE", `${path}/${id}`)),
          { concurrency: "unbounded" }
        )
        const [first, ...others] = answers.filter((it) => it.status === 200)
        assert.isEmpty(others)
        const refused = answers.filter((it) => it.status === 409 && it.json.code === 2010)
        assert.strictEqual(refused.length, 49)
        assert.deepStrictEqual((yield* user.call("GET", `${path}/${id}`)).json, first?.json)
        const entries = yield* user.call("GET", "/manage/v1/wallet/entries")
        assert.deepStrictEqual(
          entries.json.data.map((it: { kind: string }) => it.kind),
          ["release", "hold", "top_up"]
        )
      })
    )
  })
})

const rounds = 60

describe("cancel against completion", () => {
  const done = new Map<string, Deferred.Deferred<void>>()
  const finishOf = (id: string) => {
    const finished = done.get(id) ?? Deferred.makeUnsafe<void>()
    done.set(id, finished)
    return finished
  }
  const vendor = {
    ...makeVendor().account,
    poll: (handle: Handle) =>
      Effect.as(Deferred.await(finishOf(String(handle["job"]))), {
        _tag: "Done" as const,
        result: {
          items: [{ _tag: "Bytes" as const, bytes: new Uint8Array([1]), mime: "image/png" }]
        }
      }),
    submit: ({ taskId }: { taskId: string }) =>
      Effect.succeed({
        _tag: "Accepted" as const,
        handle: { job: taskId },
        pollAfter: Duration.zero
      })
  }
  layer(layerGateway({ database: stores.postgres, vendor }))((it) => {
    it.effect(`has exactly one winner in each of ${rounds} rounds, and the wallet agrees`, () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        let cancelled = 0
        let completed = 0
        for (let round = 0; round < rounds; round += 1) {
          const id = yield* created(user)
          yield* processing(user, id)
          const cancel = user.call("DELETE", `${path}/${id}`)
          const finish = Deferred.succeed(finishOf(id), undefined)
          // So that both outcomes occur on any machine
          if (round % 10 === 8) {
            yield* finish
            yield* eventually(
              user.call("GET", `${path}/${id}`),
              (it) => it.json.task_info.status === "completed"
            )
          }
          // The cancel starts 0 to 18 statements earlier, and needs some itself
          const cancelling = yield* Effect.forkChild(cancel)
          yield* statements(2 * (round % 10))
          if (round % 10 === 9) yield* Fiber.await(cancelling)
          yield* finish
          const answer = yield* Fiber.join(cancelling)
          const end = yield* eventually(user.call("GET", `${path}/${id}`), (it) =>
            ["completed", "failed"].includes(it.json.task_info.status)
          )
          if (answer.status === 200) {
            cancelled += 1
            assert.strictEqual(end.json.task_info.error.code, 4004)
            assert.isUndefined(end.json.images)
          } else {
            completed += 1
            assert.strictEqual(answer.json.code, 2010)
            assert.strictEqual(end.json.task_info.status, "completed")
          }
          const ended = yield* terminalEvents(id)
          assert.strictEqual(ended, 1)
        }
        assert.strictEqual(cancelled + completed, rounds)
        assert.isAbove(cancelled, 0)
        assert.isAbove(completed, 0)
        const wallet = yield* user.call("GET", "/manage/v1/wallet")
        assert.strictEqual(wallet.json.held_balance, "0.00")
        assert.strictEqual(wallet.json.settled_balance, (1000 - 7.5 * completed).toFixed(2))
      })
    )
  })
})

const statements = (count: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    for (let i = 0; i < count; i += 1) yield* sql`SELECT 1`
  })

const terminalEvents = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const rows =
    yield* sql`SELECT 1 FROM events WHERE task_id = ${id} AND type IN ('task.succeeded', 'task.failed')`
  return rows.length
})
