import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { signedIn } from "../../support/browser.ts"
import {
  adminToken,
  advance,
  callWith,
  eventually,
  GatewayHttp,
  layerGateway,
  makeUser,
  operator,
  secondsUntil
} from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

/** docs/reference/http.md#events-of-a-user */

const path = "/manage/v1/events"
const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const hook = { url: "https://hooks.example.com/a", events: ["task.succeeded"] }

/** An open stream: the events so far, and whether it has ended. */
const listen = (headers: Record<string, string>, query = "") =>
  Effect.gen(function* () {
    const http = yield* GatewayHttp
    const response = yield* http.fetch(`${path}${query}`, { headers })
    assert.strictEqual(response.status, 200)
    assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/u)
    assert.strictEqual(response.headers.get("cache-control"), "no-store")
    const state = { text: "", isOver: false }
    const reader = response.body!.getReader()
    const read = async (): Promise<void> => {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        state.text += new TextDecoder().decode(next.value)
      }
      state.isOver = true
    }
    void read()
    yield* Effect.addFinalizer(() => Effect.promise(() => reader.cancel().catch(() => {})))
    return {
      state,
      seen: () =>
        eventsIn(state.text)
          .filter(({ type }) => type !== "wallet")
          .map(({ data, type }) => `${type} ${data.status}`),
      balances: () =>
        eventsIn(state.text)
          .filter(({ type }) => type === "wallet")
          .map(({ data }) => `${data.available_balance} ${data.held_balance}`)
    }
  })

const eventsIn = (text: string) =>
  [...text.matchAll(/^data: (.*)$/gmu)].map(([, event]) => JSON.parse(event!))

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Advances the clock until a stream of the key begins, and ends the stream. */
const opens = Effect.fnUntraced(function* (key: string) {
  const http = yield* GatewayHttp
  const begun = yield* eventually(
    Effect.andThen(advance("1 second"), http.fetch(path, { headers: bearer(key) })),
    ({ status }) => status === 200
  )
  yield* Effect.promise(async () => begun.body?.cancel())
})

/** Advances the clock until the stream has shown this many successful deliveries. */
const delivered = (stream: Effect.Success<ReturnType<typeof listen>>, times: number) =>
  Effect.gen(function* () {
    const count = () => stream.seen().filter((it) => it === "delivery succeeded").length
    yield* secondsUntil(() => count() >= times)
    assert.strictEqual(count(), times)
  })

layer(layerGateway({ database: stores.postgres }))("events of a user", (it) => {
  it.effect("are the current state of all tasks and deliveries, then each change", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const stranger = yield* makeUser()
      yield* user.call("POST", "/manage/v1/webhook-endpoints", hook)
      yield* user.call("POST", image, { prompt: "A lighthouse" })
      const earlier = yield* listen(bearer(user.key))
      yield* delivered(earlier, 1)
      // The balance moves with the hold and with what is charged
      assert.deepStrictEqual(earlier.balances().slice(-1), ["992.50 0.00"])
      const own = yield* listen(bearer(user.key))
      const foreign = yield* listen(bearer(stranger.key))
      const watching = yield* listen(bearer(adminToken), `?user_id=${user.id}`)
      yield* secondsUntil(() => own.seen().length >= 2)
      assert.sameMembers(own.seen(), ["task completed", "delivery succeeded"])
      const before = own.seen().length
      yield* user.call("POST", image, { prompt: "Another" })
      yield* delivered(own, 2)
      // Streams scan at different moments, so only one may see a state in between
      const final = (stream: typeof own) =>
        stream
          .seen()
          .filter((it) => /completed|succeeded/u.test(it))
          .toSorted()
      for (const stream of [own, watching]) {
        yield* secondsUntil(() => final(stream).length >= 4)
      }
      const later = own.seen().slice(before)
      assert.includeMembers(later, ["task completed", "delivery succeeded"])
      assert.isTrue(later.some((it) => it === "task pending" || it === "task processing"))
      assert.deepStrictEqual(final(watching), final(own))
      assert.deepStrictEqual(foreign.seen(), [])
      assert.deepStrictEqual(foreign.balances(), ["1000.00 0.00"])
      assert.includeMembers([...own.balances()], ["992.50 0.00", "985.00 0.00"])
      const quiet = own.seen().length
      yield* advance("20 seconds")
      assert.lengthOf(own.seen(), quiet)
      assert.include(own.state.text, ": still here")
    }).pipe(Effect.scoped)
  )

  it.effect("end with the session or the key, and do not begin for other callers", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const session = yield* signedIn({ api_key: user.key })
      const byCookie = yield* listen({ cookie: session.cookie })
      const byKey = yield* listen(bearer(user.key))
      yield* advance("2 seconds")
      yield* session.call("DELETE", "/manage/v1/session")
      yield* secondsUntil(() => byCookie.state.isOver)
      assert.deepStrictEqual([byCookie.state.isOver, byKey.state.isOver], [true, false])
      yield* operator("PATCH", `/manage/v1/users/${user.id}`, { disabled: true })
      yield* secondsUntil(() => byKey.state.isOver)
      assert.isTrue(byKey.state.isOver)
      const other = yield* makeUser()
      const foreign = yield* other.call("GET", `${path}?user_id=${user.id}`)
      assert.strictEqual(foreign.json.code, 1004)
      assert.strictEqual((yield* operator("GET", path)).json.code, 1004)
      const crossSite = { cookie: session.cookie, "sec-fetch-site": "cross-site" }
      const hostile = yield* callWith(undefined)("GET", path, undefined, crossSite)
      assert.strictEqual(hostile.json.code, 1007)
    }).pipe(Effect.scoped)
  )

  it.effect("do not count as use of a session: one that only listens ends like an idle one", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const session = yield* signedIn({ api_key: user.key })
      const stream = yield* listen({ cookie: session.cookie })
      const read = Effect.map(
        user.call("GET", "/manage/v1/sessions"),
        ({ json }) => json.data[0].last_seen_at
      )
      const before = yield* read
      yield* advance("3 minutes", "10 seconds")
      assert.strictEqual(yield* read, before)
      assert.isFalse(stream.state.isOver)
      yield* session.call("GET", "/manage/v1/session")
      assert.notStrictEqual(yield* read, before)
      const sql = yield* SqlClient.SqlClient
      yield* sql`UPDATE sessions SET last_seen_at = last_seen_at - interval '12 hours' WHERE user_id = ${user.id}`
      yield* secondsUntil(() => stream.state.isOver)
      assert.isTrue(stream.state.isOver)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "are those of webhooks with the same bytes, each once, if they are requested by type",
    () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const stranger = yield* makeUser()
        yield* user.call("POST", "/manage/v1/webhook-endpoints", {
          ...hook,
          events: ["task.created", "task.succeeded", "balance.low"]
        })
        yield* user.call("PATCH", "/manage/v1/wallet", { trigger_threshold: "999.00" })
        const events = "?events=task.created,task.succeeded,balance.low"
        const own = yield* listen(bearer(user.key), events)
        const made = yield* listen(bearer(user.key), "?events=task.created")
        const watching = yield* listen(bearer(adminToken), `${events}&user_id=${user.id}`)
        const foreign = yield* listen(bearer(stranger.key), events)
        yield* user.call("POST", image, { prompt: "A lighthouse" })
        const got = () => eventsIn(own.state.text).map(({ data }) => data)
        for (const stream of [own, watching]) {
          yield* secondsUntil(() => eventsIn(stream.state.text).length >= 3)
        }
        yield* secondsUntil(() => eventsIn(made.state.text).length >= 1)
        yield* advance("3 seconds")
        assert.strictEqual(got()[0].type, "task.created")
        assert.sameMembers(
          got().map(({ type }) => type),
          ["task.created", "balance.low", "task.succeeded"]
        )
        const deliveries = (yield* user.call("GET", "/manage/v1/webhook-deliveries")).json.data
        for (const { body, created_at, id, type } of got()) {
          const envelope = JSON.parse(body)
          assert.deepStrictEqual([envelope.id, envelope.type], [id, type])
          assert.strictEqual(envelope.created_at, created_at)
          const delivery = deliveries.find((it: { event_id: string }) => it.event_id === id)
          const sent = yield* user.call("GET", `/manage/v1/webhook-deliveries/${delivery.id}`)
          assert.strictEqual(body, sent.json.body)
        }
        assert.deepStrictEqual(eventsIn(watching.state.text), eventsIn(own.state.text))
        assert.deepStrictEqual(eventsIn(foreign.state.text), [])
        assert.lengthOf(eventsIn(made.state.text), 1)
        // A listener that was away resumes from a time
        const { created_at } = got().at(-1)
        const later = yield* listen(bearer(user.key), `${events}&since=${created_at}`)
        const ids = () => eventsIn(later.state.text).map(({ data }) => data.id)
        yield* secondsUntil(() => ids().includes(got().at(-1).id))
        for (const query of ["?events=task.born", "?events=", `?since=${created_at}`]) {
          const refused = yield* user.call("GET", `${path}${query}`)
          assert.deepStrictEqual([refused.status, refused.json.code], [400, 2001], query)
        }
      }).pipe(Effect.scoped)
  )

  it.effect("are sent to at most ten streams of a user; a closed stream frees its place", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const full = yield* Effect.gen(function* () {
        for (let n = 0; n < 10; n += 1) yield* listen(bearer(user.key))
        yield* advance("1 second")
        return yield* user.call("GET", path)
      }).pipe(Effect.scoped)
      assert.deepStrictEqual([full.status, full.json.code], [429, 1201])
      yield* opens(user.key)
    }).pipe(Effect.scoped)
  )

  it.effect("are sent to at most ten streams if more are requested at once", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const http = yield* GatewayHttp
      const answers = yield* Effect.forEach(
        Array.from({ length: 30 }),
        () => http.fetch(path, { headers: bearer(user.key) }),
        { concurrency: "unbounded" }
      )
      const begun = answers.filter(({ status }) => status === 200)
      assert.lengthOf(begun, 10)
      const cancel = (answer: Response) => Effect.promise(async () => answer.body?.cancel())
      yield* Effect.forEach(answers, cancel)
      yield* opens(user.key)
    }).pipe(Effect.scoped)
  )
})
