import { assert, describe, it } from "@effect/vitest"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { taskRequest } from "../../support/mcpTasks.ts"
import { pause, until } from "../../support/until.ts"

const rounds = 3

const send = (
  gateway: GatewayProcess,
  method: string,
  params: Readonly<Record<string, unknown>>
) => {
  const { body, headers } = taskRequest(method, params)
  return gateway.call("POST", "/mcp", body, headers)
}

/** The handle of a call that is repeated until it gets one, however often the service is killed. */
const callSurely = (gateway: GatewayProcess, prompt: string) =>
  until<string>(
    async () => {
      const args = { model: "text-to-image-max", input: { prompt } }
      const answer = await send(gateway, "tools/call", {
        name: "create_task",
        arguments: args
      }).catch(() => undefined)
      return answer?.json?.result?.taskId
    },
    { what: "the handle of a call" }
  )

/** docs/reference/mcp.md#tasks */
describe("kill -9 between a call of an MCP tool and its result", () => {
  it("the next process has the task and its result, bought once", async () => {
    await using gateway = await GatewayProcess.start({
      env: { EMBEDDED_DURABLE: "false", SIMULATOR_DELAY: "500 millis" }
    })
    await gateway.key()
    const ids: Array<string> = []
    for (let round = 0; round < rounds; round += 1) {
      const called = callSurely(gateway, `image ${round}`)
      await pause((round * 211) % 500)
      await gateway.restart()
      ids.push(await called)
      // Once more, while the task runs
      await gateway.restart()
    }
    assert.strictEqual(new Set(ids).size, rounds)
    let completed = 0
    for (const taskId of ids) {
      const { result, status } = await until<{
        readonly status: string
        readonly result: { readonly structuredContent: { readonly error: { code: number } | null } }
      }>(
        async () => {
          const { json } = await send(gateway, "tasks/get", { taskId })
          return json.result.status === "working" ? undefined : json.result
        },
        { what: `the result of ${taskId}`, millis: 60_000 }
      )
      assert.strictEqual(status, "completed")
      const { error } = result.structuredContent
      // A submit in doubt is never repeated
      if (error === null) completed += 1
      else assert.strictEqual(error.code, 3004)
    }
    const { json: wallet } = await gateway.call("GET", "/manage/v1/wallet")
    assert.strictEqual(wallet.held_balance, "0.00")
    assert.strictEqual(wallet.settled_balance, (1000 - completed * 7.5).toFixed(2))
    assert.match((await gateway.call("GET", "/metrics")).text, /^gateway_wallet_drift 0$/mu)
  }, 300_000)
})
