import { Effect, Exit, Scope } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { killRounds } from "../../support/killRounds.ts"
import { chatEvents, mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { events } from "../../support/mockVendors.ts"
import type { MockVendor, Script, Seen } from "../../support/mockVendors.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { until } from "../../support/until.ts"

/** What the vendor does with a call, named by its `user`. */
type Part = "silent" | "often" | "slices" | "ending"

/** A user of the gateway, whose calls all get the same kind of response. */
interface Caller {
  readonly part: Part
  readonly key: string
  /** The wallet before its calls. */
  readonly before: Wallet
}

interface Wallet {
  readonly held_balance: string
  readonly settled_balance: string
}

interface Killed {
  readonly silent: Caller
  readonly often: Caller
  readonly slices: Caller
  readonly ending: Caller
  /** The cost of a call in credits. */
  readonly cost: number
  /** The calls of `often` that the vendor received. */
  readonly calls: number
}

const partOf = ({ body }: Seen): Part | undefined =>
  body === "" ? undefined : JSON.parse(body).user

/** Three slices without an end. */
const words = Array.from({ length: 11 }, () => "x".repeat(1000))

const script: Script = (request, response) => {
  const part = partOf(request)
  if (part === "silent") return
  if (part !== "slices") return openAiScript(request, response)
  return events(response, chatEvents(words, false), (index) =>
    index < words.length ? Promise.resolve() : new Promise(() => {})
  )
}

const tooLong = 300_000

/** On Postgres calls are released when their process's heartbeat is 30 seconds old, so one kill is enough. */
const stores = [
  { store: "embedded", kills: killRounds },
  { store: "postgres", kills: 1 }
] as const

describe.each(stores)("kill -9 in passthrough calls ($store)", ({ kills, store }) => {
  const scope = Scope.makeUnsafe()
  const killed: Array<Killed> = []
  let upstream: MockVendor
  let gateway: GatewayProcess

  const post = ({ key, part }: Pick<Caller, "key" | "part">, stream = false) =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "gpt-4o",
        user: part,
        messages: [],
        ...(stream ? { stream } : { max_tokens: 600 })
      })
    })

  const wallet = async (key: string): Promise<Wallet> => {
    const answer = await fetch(`${gateway.url}/manage/v1/wallet`, {
      headers: { authorization: `Bearer ${key}` }
    })
    return (await answer.json()) as Wallet
  }

  /** The wallet once nothing is held. */
  const settled = (key: string) =>
    until(
      async () => {
        const found = await wallet(key)
        return found.held_balance === "0.00" && found
      },
      { what: "nothing is held", millis: 120_000 }
    )

  const callerOf = async (part: Part): Promise<Caller> => {
    const { key } = await gateway.makeUser()
    return { part, key, before: await wallet(key) }
  }

  const received = (part: Part) => upstream.seen.filter((it) => partOf(it) === part).length

  /** Calls in every phase, and the death of their process at the response to one of them. */
  const kill = async (): Promise<Killed> => {
    const silent = await callerOf("silent")
    const slices = await callerOf("slices")
    const first = await callerOf("often")
    const ending = await callerOf("ending")
    const cost = Number((await post(first)).headers.get("x-service-cost"))
    const often = { ...first, before: await settled(first.key) }
    upstream.seen.length = 0

    const open = [
      ...Array.from({ length: 5 }, () => post(silent)),
      ...Array.from({ length: 4 }, () => post(slices, true))
    ].map((one) => one.then((answer) => answer.text()).catch(() => undefined))
    await until(() => received("silent") === 5, { what: "all are upstream" })
    assert.notEqual((await wallet(silent.key)).held_balance, "0.00")
    // Each holds three slices
    await until(async () => Number((await wallet(slices.key)).held_balance) > 4 * 12, {
      what: "they hold further slices"
    })
    const service = { isAlive: true }
    const client = async () => {
      while (service.isAlive) {
        await post(often).then(
          (answer) => answer.arrayBuffer().catch(() => {}),
          () => {}
        )
      }
    }
    const clients = Array.from({ length: 8 }, client)
    await until(() => received("often") > 200, { what: "a reservation is drawn on" })
    const answered = Promise.withResolvers<void>()
    const ends = Array.from({ length: 30 }, () =>
      post(ending).then(
        () => answered.resolve(),
        () => {}
      )
    )
    await answered.promise
    await gateway.kill()
    service.isAlive = false
    await Promise.all([...open, ...clients, ...ends])
    const calls = received("often")
    await gateway.start()
    return { silent, often, slices, ending, cost, calls }
  }

  beforeAll(async () => {
    upstream = await mockOpenAi()
    upstream.script = script
    const database =
      store === "embedded"
        ? {}
        : {
            databaseUrl: (await Effect.runPromise(Scope.provide(processDatabaseUrl, scope))).href
          }
    gateway = await GatewayProcess.start({
      ...database,
      env: {
        OPENAI_API_KEY: "sk-vendor",
        OPENAI_BASE_URL: `${upstream.origin}/v1`,
        EMBEDDED_DURABLE: "false"
      }
    })
    for (let n = 0; n < kills; n += 1) killed.push(await kill())
  }, tooLong)
  afterAll(async () => {
    await gateway.close()
    await upstream.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  it(
    "before the response: the rescuer of the next process releases the hold, and nothing is charged",
    async () => {
      for (const { silent } of killed) assert.deepEqual(await settled(silent.key), silent.before)
    },
    tooLong
  )

  it(
    "while a key calls often: nothing stays held, and at most the completed calls are charged",
    async () => {
      for (const { calls, cost, often } of killed) {
        const { settled_balance: balance } = await settled(often.key)
        const charged = Number(often.before.settled_balance) - Number(balance)
        assert.isAbove(charged, cost * 100)
        assert.isAtMost(charged, (cost + 0.01) * calls)
      }
    },
    tooLong
  )

  it(
    "between two slices of streams: nothing stays held, and nothing is charged",
    async () => {
      for (const { slices } of killed) assert.deepEqual(await settled(slices.key), slices.before)
    },
    tooLong
  )

  it(
    "between response and settlement: settled or released, never left open",
    async () => {
      for (const { ending } of killed) await settled(ending.key)
      const text = await (await fetch(`${gateway.url}/metrics`)).text()
      assert.match(text, /gateway_wallet_drift 0/)
    },
    tooLong
  )
})
