import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { layerPostgres } from "../../../src/db/Database.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { mockOpenAi } from "../../support/mockOpenAi.ts"
import type { Seen } from "../../support/mockVendors.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { until } from "../../support/until.ts"

/** The cost of a call with the mock's usage; nothing is rounded. */
const cost = 0.7
const clients = 8

/** One call with a key, started before or after the key was revoked. */
interface Call {
  readonly n: number
  readonly isLate: boolean
  readonly status: number
  readonly code: unknown
}

/** Makes calls through the process until `isEnough` returns true, several clients at a time. */
const busy = (gateway: GatewayProcess, key: string, state: { readonly isRevoked: boolean }) => {
  const calls: Array<Call> = []
  let begun = 0
  const one = async (): Promise<Call> => {
    const n = (begun += 1)
    const isLate = state.isRevoked
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-4o", max_tokens: 1000, user: `call ${n}`, messages: [] })
    })
    const { code } = (await answer.json()) as { readonly code?: unknown }
    return { n, isLate, status: answer.status, code }
  }
  const client = async () => {
    for (let late = 0; late < 20;) {
      const call = await one()
      calls.push(call)
      if (call.isLate) late += 1
    }
  }
  return { calls, done: Promise.all(Array.from({ length: clients }, client)) }
}

/** How a key's secret is ended, with the status of that request. */
type End = (second: GatewayProcess, at: string) => Promise<void>

const revoke: End = async (second, at) => {
  const revoked = await second.call("DELETE", at)
  assert.strictEqual(revoked.status, 204, revoked.text)
}

const rotate: End = async (second, at) => {
  const rotated = await second.call("POST", `${at}/rotate`, { grace_seconds: 0 })
  assert.strictEqual(rotated.status, 200, rotated.text)
}

/** A new key, busy in the first process and ended in the second. Returns the number of charged calls. */
const endedWhileBusy = async (
  first: GatewayProcess,
  second: GatewayProcess,
  seen: ReadonlyArray<Seen>,
  reservations: () => Promise<number>,
  end: End
): Promise<number> => {
  const made = await second.call("POST", "/manage/v1/api-keys", { name: "busy" })
  assert.strictEqual(made.status, 201, made.text)
  const before = seen.length
  const state = { isRevoked: false }
  const { calls, done } = busy(first, made.json.key, state)
  await until(async () => seen.length > before + 100 && (await reservations()) > 0, {
    what: "a reservation that is drawn on"
  })
  await end(second, `/manage/v1/api-keys/${made.json.id}`)
  state.isRevoked = true
  await done

  const late = calls.filter(({ isLate }) => isLate)
  assert.isAtLeast(late.length, 20 * clients)
  assert.deepEqual(
    new Set(late.map(({ code, status }) => `${status} ${code}`)),
    new Set(["401 1003"])
  )
  const sent = new Set(seen.slice(before).map(({ body }) => JSON.parse(body).user))
  assert.deepEqual(
    late.filter(({ n }) => sent.has(`call ${n}`)),
    []
  )
  const answered = calls.filter(({ status }) => status === 200).length
  assert.strictEqual(answered, seen.length - before)
  return answered
}

/** The first process reads its keys at a random time, so several keys are used in turn. */
const ends = [revoke, rotate, revoke, rotate]

const revokeKeys = async (databaseUrl: string, reservations: () => Promise<number>) => {
  const upstream = await mockOpenAi()
  const env = { OPENAI_API_KEY: "sk-vendor", OPENAI_BASE_URL: `${upstream.origin}/v1` }
  await using first = await GatewayProcess.start({ databaseUrl, env })
  await using second = await GatewayProcess.start({ databaseUrl, env })
  second.useKey((await first.makeUser("10000.00")).key)
  let charged = 0
  for (const end of ends) {
    charged += await endedWhileBusy(first, second, upstream.seen, reservations, end)
  }
  await upstream.close()
  const wallet = await until(
    async () => {
      const { json } = await second.call("GET", "/manage/v1/wallet")
      return json.held_balance === "0.00" ? json : undefined
    },
    { what: "a wallet that holds nothing" }
  )
  assert.strictEqual(await reservations(), 0)
  assert.strictEqual(wallet.settled_balance, (10_000 - cost * charged).toFixed(2))
  assert.match((await second.call("GET", "/metrics")).text, /^gateway_wallet_drift 0$/mu)
}

describe("a key that calls often at one process", () => {
  it.live(
    "and is revoked or rotated at another is refused after the response: nothing is sent or held, and the sums are exact",
    () =>
      Effect.gen(function* () {
        const database = yield* processDatabaseUrl
        // One connection for all counts, because each connection is a server process
        const url = Redacted.make(database.href)
        yield* Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          const rows = sql`SELECT FROM holds WHERE kind = 'reservation'`
          const count = () => Effect.runPromise(Effect.map(rows, ({ length }) => length))
          yield* Effect.promise(() => revokeKeys(database.href, count))
        }).pipe(Effect.provide(layerPostgres({ url, maxConnections: 1 })))
      }),
    180_000
  )
})
