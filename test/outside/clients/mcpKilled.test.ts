import { resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { z } from "zod"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { until } from "../../support/until.ts"
import { connectTasks, taskSession } from "../support/mcpTasks.ts"

/** The schemas of SEP-2663, which the client needs because the methods belong to an extension. */
const taskFields = {
  taskId: z.uuid(),
  createdAt: z.iso.datetime(),
  lastUpdatedAt: z.iso.datetime(),
  ttlMs: z.int(),
  pollIntervalMs: z.int()
}
const result = z.looseObject({
  isError: z.literal(false).optional(),
  content: z.array(z.looseObject({ type: z.string() })),
  structuredContent: z.looseObject({ task_id: z.uuid(), status: z.string() })
})
const GotTask = z.discriminatedUnion("status", [
  z.looseObject({ ...taskFields, status: z.literal("working") }),
  z.looseObject({ ...taskFields, status: z.literal("completed"), result }),
  z.looseObject({ ...taskFields, status: z.literal("cancelled") })
])
const Acknowledged = z.looseObject({})

const model = "alibaba/text-to-image-max"
const price = 7.5

/** docs/reference/mcp.md#tasks */
describe("client 2.x after its server was killed between a call and its result", () => {
  let gateway: GatewayProcess
  let server: { readonly url: string; readonly key: string }
  beforeAll(async () => {
    gateway = await GatewayProcess.start({ env: { SIMULATOR_DELAY: "4 seconds" } })
    server = { url: gateway.url, key: await gateway.key() }
  })
  afterAll(() => gateway.close())

  /** Waits until the vendor has the job, so that a kill can no longer leave its submit in doubt. */
  const submitted = (id: string) =>
    until(
      async () => {
        const { json } = await gateway.call("GET", `/manage/v1/tasks/${id}`)
        return json.attempts.at(-1)?.state === "submitted"
      },
      { what: `the submit of ${id}` }
    )

  /** Calls the tool, and returns what the package needs to find the task again. */
  const referenceOf = async (session: ReturnType<typeof taskSession>) => {
    const call = await session.callTool("create_task", { model, input: { prompt: "A quay" } })
    assert(call.kind === "task")
    const reference = call.serializeReference()
    await call.detach()
    return reference
  }

  it("gets the result from the next process, with the reference and with explicit schemas", async () => {
    const client = await connectTasks(server)
    const session = taskSession(client, server)
    const reference = await referenceOf(session)
    const { taskId } = reference
    await submitted(taskId)
    const before = await client.request({ method: "tasks/get", params: { taskId } }, GotTask)
    assert.strictEqual(before.status, "working")
    const waiting = client.callTool({
      name: "get_task",
      arguments: { task_id: taskId, wait_seconds: 45 }
    })
    const broken = waiting.then(
      () => false,
      () => true
    )
    await gateway.restart()
    assert.isTrue(await broken)

    // The same client continues, because there are no sessions
    const after = await until(
      async () => {
        const got = await client.request({ method: "tasks/get", params: { taskId } }, GotTask)
        return got.status === "completed" && got
      },
      { what: `the result of ${taskId}` }
    )
    const { content, structuredContent } = after.result
    assert.deepInclude(structuredContent, { task_id: taskId, status: "completed" })
    assert.deepEqual(
      content.map(({ type }) => type),
      ["text", "resource_link", "image"]
    )
    await client.request({ method: "tasks/cancel", params: { taskId } }, Acknowledged)
    await client.request(
      { method: "tasks/update", params: { taskId, inputResponses: {} } },
      Acknowledged
    )
    await session.close()
    await client.close()

    // Another program resumes it using only the reference
    const next = await connectTasks(server)
    const resumed = taskSession(next, server)
    const { outcome } = await (await resumed.resumeTask(reference)).settle()
    assert.deepEqual(resultFromTaskOutcome(outcome), after.result as never)
    // The same call is the same purchase
    assert.deepEqual(await referenceOf(resumed), reference)
    await resumed.close()
    await next.close()
    const { json: wallet } = await gateway.call("GET", "/manage/v1/wallet")
    assert.deepInclude(wallet, {
      held_balance: "0.00",
      settled_balance: String((1000 - price).toFixed(2))
    })
  })
})
