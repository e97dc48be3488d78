import { Effect, Exit, Scope } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { chatEvents, mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { events } from "../../support/mockVendors.ts"
import type { MockVendor } from "../../support/mockVendors.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { until } from "../../support/until.ts"

let upstream: MockVendor
let gateway: GatewayProcess

const chat = JSON.stringify({ model: "gpt-4o", max_tokens: 600, messages: [] })

const post = async () =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${await gateway.key()}`, "content-type": "application/json" },
    body: chat
  })

const wallet = async () => {
  const answer = await fetch(`${gateway.url}/manage/v1/wallet`, {
    headers: { authorization: `Bearer ${await gateway.key()}` }
  })
  return (await answer.json()) as { held_balance: string; settled_balance: string }
}

/** On Postgres calls are released when the heartbeat of their process is 30 seconds old. */
const options = { timeout: 120_000 }

describe.each(["embedded", "postgres"] as const)(
  "kill -9 in passthrough calls (%s)",
  options,
  (store) => {
    const scope = Scope.makeUnsafe()

    beforeAll(async () => {
      upstream = await mockOpenAi()
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
    })
    afterAll(async () => {
      await gateway.close()
      await upstream.close()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    })

    it("before the response: the rescuer of the next process releases the hold, and nothing is charged", async () => {
      const before = await wallet()
      upstream.script = () => {}
      const calls = Array.from({ length: 5 }, () => post().catch(() => undefined))
      await until(() => upstream.seen.length === 5, { what: "all are upstream" })
      assert.notEqual((await wallet()).held_balance, "0.00")
      await gateway.kill("SIGKILL")
      await Promise.all(calls)
      await gateway.start()
      await until(async () => (await wallet()).held_balance === "0.00", { what: "nothing is held" })
      assert.deepEqual(await wallet(), before)
    })

    it("while a key calls often: nothing stays held, and at most the completed calls are charged", async () => {
      upstream.script = openAiScript
      const cost = Number((await post()).headers.get("x-service-cost"))
      await until(async () => (await wallet()).held_balance === "0.00", { what: "it is settled" })
      const before = Number((await wallet()).settled_balance)
      upstream.seen.length = 0
      const service = { isAlive: true }
      const client = async () => {
        while (service.isAlive) {
          await post().then(
            (answer) => answer.arrayBuffer().catch(() => {}),
            () => {}
          )
        }
      }
      const clients = Promise.all(Array.from({ length: 8 }, client))
      await until(() => upstream.seen.length > 200, { what: "a reservation is drawn on" })
      await gateway.kill("SIGKILL")
      service.isAlive = false
      await clients
      const calls = upstream.seen.length
      await gateway.start()
      await until(async () => (await wallet()).held_balance === "0.00", { what: "nothing is held" })
      const charged = before - Number((await wallet()).settled_balance)
      assert.isAbove(charged, cost * 100)
      assert.isAtMost(charged, (cost + 0.01) * calls)
      const text = await (await fetch(`${gateway.url}/metrics`)).text()
      assert.match(text, /gateway_wallet_drift 0/)
    })

    it("between two slices of streams: nothing stays held, and nothing is charged", async () => {
      const before = await wallet()
      // Three slices, and no end
      const words = Array.from({ length: 11 }, () => "x".repeat(1000))
      upstream.script = (_, response) =>
        events(response, chatEvents(words, false), (index) =>
          index < 11 ? Promise.resolve() : new Promise(() => {})
        )
      const streams = Array.from({ length: 4 }, async () => {
        const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${await gateway.key()}`,
            "content-type": "application/json"
          },
          body: JSON.stringify({ model: "gpt-4o", stream: true, messages: [] })
        })
        return answer.text()
      }).map((stream) => stream.catch(() => {}))
      // Each holds three slices
      await until(async () => Number((await wallet()).held_balance) > 4 * 12, {
        what: "they hold further slices"
      })
      await gateway.kill("SIGKILL")
      await Promise.all(streams)
      await gateway.start()
      await until(async () => (await wallet()).held_balance === "0.00", { what: "nothing is held" })
      assert.deepEqual(await wallet(), before)
      const text = await (await fetch(`${gateway.url}/metrics`)).text()
      assert.match(text, /gateway_wallet_drift 0/)
    })

    it("between response and settlement: settled or released, never left open", async () => {
      upstream.script = openAiScript
      for (let round = 0; round < 3; round += 1) {
        const first = Promise.withResolvers<void>()
        const calls = Array.from({ length: 30 }, () =>
          post().then(
            () => first.resolve(),
            () => {}
          )
        )
        await first.promise
        await gateway.kill("SIGKILL")
        await Promise.all(calls)
        await gateway.start()
      }
      await until(async () => (await wallet()).held_balance === "0.00", { what: "nothing is held" })
      const text = await (await fetch(`${gateway.url}/metrics`)).text()
      assert.match(text, /gateway_wallet_drift 0/)
    })
  }
)
