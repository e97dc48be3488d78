import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { randomUUID } from "node:crypto"
import {
  adminToken,
  advance,
  eventually,
  GatewayHttp,
  layerGateway,
  makeUser,
  operator,
  secondsUntil
} from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

/** docs/reference/http.md#events-of-a-user, ADR 0232: the stream loses no event and sends none twice. */

const path = "/manage/v1/events"
const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const all = "?events=task.created,task.succeeded,task.failed,balance.low"

interface Got {
  readonly id: string | undefined
  readonly event:
    | { readonly id: string; readonly type: string; readonly task_id: string }
    | undefined
}

/** The blocks of server-sent events, without comments. */
const blocksOf = (text: string): ReadonlyArray<Got> =>
  text
    .split("\n\n")
    .slice(0, -1)
    .filter((block) => !block.startsWith(":"))
    .map((block) => {
      const data = /^data: (.*)$/mu.exec(block)?.[1]
      return {
        id: /^id: (.*)$/mu.exec(block)?.[1],
        event: data === undefined ? undefined : JSON.parse(data).data
      }
    })

/** An open stream; a slow one reads nothing until `resume`. */
const listen = Effect.fnUntraced(function* (
  key: string,
  query = all,
  headers: Record<string, string> = {},
  isSlow = false
) {
  const http = yield* GatewayHttp
  const response = yield* http.fetch(`${path}${query}`, {
    headers: { authorization: `Bearer ${key}`, ...headers }
  })
  assert.strictEqual(response.status, 200)
  let text = ""
  const gate = Promise.withResolvers<void>()
  if (!isSlow) gate.resolve()
  const reader = response.body!.getReader()
  const read = async () => {
    await gate.promise
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      text += new TextDecoder().decode(value)
    }
  }
  void read().catch(() => {})
  const cut = Effect.promise(() => reader.cancel().catch(() => {}))
  yield* Effect.addFinalizer(() => cut)
  return {
    blocks: () => blocksOf(text),
    events: () => blocksOf(text).flatMap(({ event }) => (event === undefined ? [] : [event])),
    names: () =>
      blocksOf(text).flatMap(({ event }) =>
        event === undefined ? [] : [`${event.type} ${event.task_id}`]
      ),
    cut,
    resume: Effect.sync(gate.resolve)
  }
})

type User = Effect.Success<ReturnType<typeof makeUser>>

const isSome = (blocks: ReadonlyArray<Got>) => blocks.length > 0

const create = (user: User, prompt = "A lighthouse") =>
  Effect.map(user.call("POST", image, { prompt }), ({ json, status }) => {
    assert.strictEqual(status, 202, JSON.stringify(json))
    return json.task_info.id as string
  })

const createMany = (user: User, count: number) =>
  Effect.forEach(Array.from({ length: count }), () => create(user), { concurrency: 10 })

/** Ends a task at once, which would take a vendor minutes. */
const cancel = (user: User, ids: ReadonlyArray<string>) =>
  Effect.forEach(
    ids,
    (id) =>
      Effect.map(user.call("DELETE", `${image}/${id}`), ({ json, status }) =>
        assert.strictEqual(status, 200, JSON.stringify(json))
      ),
    { concurrency: 10 }
  )

const untilCompleted = (user: User, id: string) =>
  Effect.gen(function* () {
    for (let second = 0; second < 600; second += 1) {
      const { json } = yield* user.call("GET", `${image}/${id}`)
      if (json.task_info.status === "completed") return
      yield* advance("1 second")
    }
    assert.fail(`${id} has not ended`)
  })

/** Scans until the stream has sent this many events, and two more scans, which repeat nothing. */
const untilSent = (seen: () => number, count: number) =>
  Effect.gen(function* () {
    yield* secondsUntil(() => seen() >= count)
    yield* advance("2 seconds")
  })

const expected = (ids: ReadonlyArray<string>) =>
  ids.flatMap((id) => [`task.created ${id}`, `task.failed ${id}`]).toSorted()

// Tasks end only when the test ends them
const env = { SIMULATOR_DELAY: "10 hours" }

describe("the stream of events", () => {
  layer(layerGateway({ database: stores.postgres, env }))((it) => {
    it.effect(
      "has all events of 400 tasks, even if old tasks end after hundreds of newer ones",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser({ credits: 10_000 })
          const stranger = yield* makeUser()
          const own = yield* listen(user.key)
          const slow = yield* listen(user.key, all, {}, true)
          const foreign = yield* listen(stranger.key)
          // The first end comes after all were created
          const ids = yield* createMany(user, 400)
          yield* cancel(user, ids.toReversed())
          yield* untilSent(() => own.events().length, 800)
          assert.deepStrictEqual(own.names().toSorted(), expected(ids))
          assert.deepStrictEqual(foreign.events(), [])
          // A receiver that read nothing in the meantime gets the same events afterwards
          assert.deepStrictEqual(slow.events(), [])
          yield* slow.resume
          yield* untilSent(() => slow.events().length, 800)
          assert.deepStrictEqual(slow.names(), own.names())
        }).pipe(Effect.scoped)
    )

    it.effect("resumes where it was cut, by the id of the last event", () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 10_000 })
        yield* cancel(user, [yield* create(user, "before")])
        const first = yield* listen(user.key)
        const [start] = yield* eventually(Effect.sync(first.blocks), isSome)
        yield* first.cut
        const seen: Array<string> = []
        const ids: Array<string> = []
        let last = start!.id!
        for (const count of [30, 1, 40]) {
          ids.push(...(yield* createMany(user, count)))
          const stream = yield* listen(user.key, all, { "last-event-id": last })
          yield* advance("1 second")
          const blocks = yield* eventually(Effect.sync(stream.blocks), isSome)
          // Cut in the middle of what exists
          const some = blocks.slice(0, Math.ceil(blocks.length / 2))
          seen.push(
            ...some.flatMap(({ event }) =>
              event === undefined ? [] : [`${event.type} ${event.task_id}`]
            )
          )
          last = some.at(-1)!.id!
          yield* stream.cut
        }
        yield* cancel(user, ids)
        const end = yield* listen(user.key, all, { "last-event-id": last })
        yield* untilSent(() => seen.length + end.events().length, 2 * ids.length)
        seen.push(...end.names())
        assert.deepStrictEqual(seen.toSorted(), expected(ids))
      }).pipe(Effect.scoped)
    )

    it.effect("skips events of other types and ledger entries of calls", () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 10_000 })
        const stream = yield* listen(user.key, "?events=task.succeeded")
        yield* cancel(user, yield* createMany(user, 3))
        yield* advance("2 seconds")
        const last = stream.blocks().at(-1)!
        assert.isUndefined(last.event)
        const sql = yield* SqlClient.SqlClient
        const [wallet] = yield* sql`SELECT entry_count FROM wallets WHERE user_id = ${user.id}`
        assert.strictEqual(last.id!.split(".")[0], String(wallet!["entryCount"]))
      }).pipe(Effect.scoped)
    )
  })

  layer(layerGateway({ database: stores.postgres }))((it) => {
    it.effect(
      "has both alerts of two crossings, and never repeats an old one in a later stream",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser({ credits: 1000 })
          yield* user.call("POST", "/manage/v1/webhook-endpoints", {
            url: "https://hooks.example.com/a",
            events: ["balance.low"]
          })
          yield* user.call("PATCH", "/manage/v1/wallet", { trigger_threshold: "995.00" })
          const first = yield* listen(user.key)
          const [start] = yield* eventually(Effect.sync(first.blocks), isSome)
          yield* first.cut
          // While nobody listens: an alert, a top-up that rearms it, and another alert
          for (const operation of ["one", "two"]) {
            yield* untilCompleted(user, yield* create(user))
            const topUp = yield* operator(
              "POST",
              `/manage/v1/users/${user.id}/top-ups`,
              { amount: "7.50" },
              { "idempotency-key": operation }
            )
            assert.strictEqual(topUp.status, 201, JSON.stringify(topUp.json))
            yield* advance("1 second")
          }
          const again = yield* listen(user.key, all, { "last-event-id": start!.id! })
          yield* untilSent(() => again.events().length, 6)
          const types = again.events().map(({ type }) => type)
          const round = ["task.created", "task.succeeded", "balance.low"]
          assert.deepStrictEqual(types, [...round, ...round])
          const late = yield* listen(user.key, all, { "last-event-id": again.blocks().at(-1)!.id! })
          const fresh = yield* listen(user.key)
          yield* advance("3 seconds")
          assert.deepStrictEqual([late.events(), fresh.events()], [[], []])
          // Beyond the end: an id from another gateway, or from before a restore
          const [end] = again.blocks().at(-1)!.id!.split(".")
          const beyond = `${Number(end) + 1}.0`
          for (const foreign of ["x", "1", "-1.2", "1.2.3", `${"9".repeat(30)}.1`, beyond]) {
            const headers = { "last-event-id": foreign }
            const refused = yield* user.call("GET", `${path}${all}`, undefined, headers)
            assert.deepStrictEqual([refused.status, refused.json.code], [400, 2001], foreign)
          }
          // The operator asks for a user that does not exist
          const nobody = `${all}&user_id=${randomUUID()}`
          const blocks = (yield* listen(adminToken, nobody, { "last-event-id": "0.0" })).blocks
          const [begun] = yield* eventually(Effect.sync(blocks), isSome)
          assert.strictEqual(begun?.id, "0.0")
        }).pipe(Effect.scoped)
    )
  })
})
