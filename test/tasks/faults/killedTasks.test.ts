import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { aliasCatalog, aliasPath, catalogFile } from "../../support/aliases.ts"
import type { HttpResult } from "../../support/gateway.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { killAfter, killRounds } from "../../support/killRounds.ts"
import { taskRequest } from "../../support/mcpTasks.ts"
import { ownClock } from "../../support/ownClock.ts"
import { pause, until } from "../../support/until.ts"
import { startReceiver } from "../../support/webhookReceiver.ts"
import type { Received } from "../../support/webhookReceiver.ts"

/** docs/reference/batches.md, docs/reference/mcp.md#tasks */

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const batchPath = "/manage/v1/task-batches"
const events = ["task.created", "task.succeeded", "task.failed", "task_batch.completed"]
/** Credits of a task of `path`. */
const price = 7.5
const tooLong = 300_000 + killRounds * 60_000

interface TaskJson {
  readonly task_info: {
    readonly id: string
    readonly status: string
    readonly error?: { readonly code: number }
  }
}

interface Batch {
  readonly id: string
  readonly status: string
  readonly data: ReadonlyArray<{ readonly id: string }>
  readonly counts: { readonly total: number; readonly completed: number; readonly failed: number }
  readonly receipt: { readonly held: string; readonly captured: string; readonly released: string }
}

/** What `tasks/get` of a task that has ended returns. */
interface ToolResult {
  readonly status: string
  readonly result: {
    readonly structuredContent: { readonly error: { readonly code: number } | null }
  }
}

/** Repeats the same create until it gets a response, however often the service is killed. */
const surely = async (gateway: GatewayProcess, at: string, body: object, key: string) => {
  const answer = await until<HttpResult>(
    () => gateway.call("POST", at, body, { "idempotency-key": key }).catch(() => undefined),
    { what: "the response to a create", millis: 120_000 }
  )
  assert.strictEqual(answer.status, 202, answer.text)
  return answer.json
}

const createSurely = async (gateway: GatewayProcess, prompt: string, key: string, at = path) =>
  String((await surely(gateway, at, { prompt }, key)).task_info.id)

const createBatchSurely = async (
  gateway: GatewayProcess,
  prompts: ReadonlyArray<string>,
  key: string
) => {
  const tasks = prompts.map((prompt) => ({
    vendor: "alibaba",
    model: "text-to-image-max",
    body: { prompt }
  }))
  return String((await surely(gateway, batchPath, { tasks }, key)).id)
}

const send = (
  gateway: GatewayProcess,
  method: string,
  params: Readonly<Record<string, unknown>>
) => {
  const { body, headers } = taskRequest(method, params)
  return gateway.call("POST", "/mcp", body, headers)
}

/** The handle of an MCP tool call, which is repeated until it gets one. */
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
    { what: "the handle of a call", millis: 120_000 }
  )

const endOf = (gateway: GatewayProcess, id: string, at = path) =>
  until<TaskJson>(
    async () => {
      const task = await gateway.call("GET", `${at}/${id}`)
      const { status } = task.json.task_info
      return status === "completed" || status === "failed" ? task.json : undefined
    },
    { what: `the end of task ${id}` }
  )

const endOfBatch = (gateway: GatewayProcess, id: string) =>
  until<Batch>(
    async () => {
      const { json } = await gateway.call("GET", `${batchPath}/${id}`)
      return json.status === "completed" ? json : undefined
    },
    { what: `the end of batch ${id}` }
  )

/** The error in the result of a call of an MCP tool, or `null`. */
const resultOf = async (gateway: GatewayProcess, taskId: string) => {
  const { result, status } = await until<ToolResult>(
    async () => {
      const { json } = await send(gateway, "tasks/get", { taskId })
      return json.result.status === "working" ? undefined : json.result
    },
    { what: `the result of ${taskId}` }
  )
  assert.strictEqual(status, "completed")
  return result.structuredContent.error
}

const walletOf = async (gateway: GatewayProcess) =>
  (await gateway.call("GET", "/manage/v1/wallet")).json

/** The tasks of all submits, oldest first. */
const submitsIn = async (gateway: GatewayProcess) =>
  (await readFile(join(gateway.dataDir, "submits.log"), "utf8")).trim().split("\n")

/** The received events of a task, each with its delivery ids and bodies. */
const arrivals = (received: ReadonlyArray<Received>, id: string) => {
  const of = received.filter((it) => it.event.data.payload.task_info?.id === id)
  const types = [...new Set(of.map((it) => it.event.type))].sort()
  const distinct = new Set(of.map((it) => `${it.deliveryId} ${it.body}`)).size
  return { types, distinct }
}

describe("one service that is stopped, killed and started again", () => {
  let receiver: Awaited<ReturnType<typeof startReceiver>>
  let gateway: GatewayProcess
  beforeAll(async () => {
    // One of nine deliveries is refused at first, so that kills also happen during retries
    receiver = await startReceiver((one, before) =>
      Number(`0x${one.deliveryId.slice(-4)}`) % 9 === 0 &&
      !before.some((it) => it.deliveryId === one.deliveryId)
        ? 500
        : 200
    )
    gateway = await GatewayProcess.start({
      main: "test/support/crashingMain.ts",
      env: {
        ...receiver.env,
        CATALOG_FILE: catalogFile(aliasCatalog),
        // Killing the process loses nothing even without fsync
        EMBEDDED_DURABLE: "false"
      }
    })
    await gateway.key()
    const hook = { url: receiver.url, events }
    const made = await gateway.call("POST", "/manage/v1/webhook-endpoints", hook)
    assert.strictEqual(made.status, 201, made.text)
  })
  afterAll(async () => {
    await gateway.close()
    await receiver[Symbol.asyncDispose]()
  })

  it(
    "answers waiting requests, releases its tasks and exits with 0 at once on SIGTERM, and the next start continues the tasks",
    async () => {
      const ids = await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          createSurely(gateway, `${n} [[sim:slow=4s]]`, `create-${n}`)
        )
      )
      const headers = {
        authorization: `Bearer ${await gateway.key()}`,
        "content-type": "application/json",
        prefer: "wait=60"
      }
      const first = await createSurely(gateway, "[[sim:hang]]", "hangs")
      const body = JSON.stringify({ prompt: "[[sim:hang]]" })
      const now = ownClock(gateway.pid)
      const asked = [
        fetch(`${gateway.url}${path}/${first}`, { headers }),
        fetch(gateway.url + path, { method: "POST", headers, body })
      ].map(async (answer) => {
        const { headers, status } = await answer
        return { status, applied: headers.get("preference-applied"), at: now() }
      })
      // The task of the later request exists, so both are waiting
      const [waiting] = await until(async () => {
        const { json } = await gateway.call("GET", "/manage/v1/tasks?limit=100")
        return json.data.length === ids.length + 2 && json.data
      })
      const stopped = now()
      assert.isBelow(await gateway.kill("SIGTERM"), 3000)
      assert.strictEqual(await gateway.ended, 0, gateway.output)
      const [read, created] = await Promise.all(asked)
      assert.deepInclude(created, { status: 202, applied: "wait=60" })
      assert.deepInclude(read, { status: 200, applied: "wait=60" })
      for (const { at } of [created!, read!]) assert.isBelow(at - stopped, 2000)
      assert.notMatch(gateway.output, /"level":"(?:WARN|ERROR|FATAL)"/u)

      await gateway.start()
      const nowAgain = ownClock(gateway.pid)
      const again = nowAgain()
      for (const id of ids) {
        assert.strictEqual((await endOf(gateway, id)).task_info.status, "completed")
      }
      assert.isBelow(nowAgain() - again, 8000)
      const all = [...ids, first, waiting.id]
      assert.sameMembers(await submitsIn(gateway), all)
      for (const id of [first, waiting.id]) {
        assert.strictEqual((await gateway.call("DELETE", `${path}/${id}`)).status, 200)
      }
    },
    tooLong
  )

  describe("kill -9 at any moment and start again", () => {
    const ids: Array<string> = []
    const batches: Array<string> = []
    const calls: Array<string> = []
    const alias = { prompt: "x [[sim:503=1]] [[sim:crash=after-submit]]", key: "alias", id: "" }
    let before = 0

    /** Creates tasks in every way while `kill` ends the process, which is then restarted. */
    const killed = async (
      name: string,
      kill: () => Promise<unknown>,
      script: { readonly task?: string; readonly inBatch?: string } = {}
    ) => {
      const { inBatch = "", task = "" } = script
      const tasks = [task, " [[sim:fail]]", " [[sim:refuse]]"].map((one, n) =>
        createSurely(gateway, `${name}${one}`, `${name}-${n}`)
      )
      const prompts = Array.from({ length: 8 }, (_, n) => `${name} ${n}`)
      prompts[6] += inBatch
      prompts[7] += " [[sim:refuse]]"
      const batch = createBatchSurely(gateway, prompts, `${name}-batch`)
      const call = callSurely(gateway, name)
      await kill()
      assert.strictEqual(await gateway.ended, "SIGKILL")
      await gateway.start()
      ids.push(...(await Promise.all(tasks)))
      batches.push(await batch)
      calls.push(await call)
    }
    const itsCrash = () => gateway.ended

    beforeAll(async () => {
      before = Number((await walletOf(gateway)).settled_balance)
      await killed("before", itsCrash, { task: " [[sim:crash=before-submit]]" })
      await killed("after", itsCrash, { inBatch: " [[sim:crash=after-submit]]" })
      await killed("alias", () => {
        const { key, prompt } = alias
        void gateway
          .call("POST", aliasPath, { prompt }, { "idempotency-key": key })
          .catch(() => undefined)
        return gateway.ended
      })
      alias.id = await createSurely(gateway, alias.prompt, alias.key, aliasPath)
      for (let round = 0; round < killRounds; round += 1) {
        await killed(`round ${round}`, async () => {
          await pause(killAfter(round, 800))
          await gateway.kill()
        })
      }
    }, tooLong)

    const isSubmittedOnce = async (id: string) => {
      assert.strictEqual((await endOf(gateway, id)).task_info.error?.code, 3004)
      const { receipt } = (await gateway.call("GET", `/manage/v1/tasks/${id}`)).json
      assert.deepStrictEqual([receipt.captured, receipt.released], ["0.00", "7.50"])
      assert.lengthOf(
        (await submitsIn(gateway)).filter((it) => it === id),
        1
      )
    }

    it(
      "before a submit: the task fails with 3004, its hold is released, and it is not submitted again",
      async () => {
        const [id = ""] = ids
        await isSubmittedOnce(id)
      },
      tooLong
    )

    it(
      "after a submit of a batch: the task fails with 3004, its hold is released, and it is not submitted again",
      async () => {
        const { data } = await endOfBatch(gateway, batches[1] ?? "")
        const { id } = data[6]!
        await isSubmittedOnce(id)
      },
      tooLong
    )

    it(
      "after the second model of an alias has bought the job: the task fails with 3004, and the third model gets no submit",
      async () => {
        const ended = await endOf(gateway, alias.id, aliasPath)
        assert.strictEqual(ended.task_info.error?.code, 3004)
        const { candidates, receipt } = (await gateway.call("GET", `/manage/v1/tasks/${alias.id}`))
          .json
        assert.deepStrictEqual(
          candidates.map(
            (it: { skipped: { reason: string } | null }) => it.skipped?.reason ?? null
          ),
          ["unavailable", null, null]
        )
        assert.deepStrictEqual(
          [receipt.model, receipt.captured, receipt.released],
          ["flux", "0.00", "12.00"]
        )
        assert.lengthOf(
          (await submitsIn(gateway)).filter((it) => it === alias.id),
          2
        )
      },
      tooLong
    )

    it(
      "every accepted task ends once, no hold stays open, no webhook is lost, nothing is submitted twice",
      async () => {
        const ended: Array<TaskJson> = []
        for (const id of ids) ended.push(await endOf(gateway, id))
        assert.strictEqual(new Set(ids).size, (3 + killRounds) * 3)
        const completed = ended.filter((it) => it.task_info.status === "completed").length
        assert.isAbove(completed, 0)
        for (const { task_info: task } of ended) {
          if (task.error !== undefined) assert.include([3001, 3004, 3005], task.error.code)
        }
        let others = 0
        for (const id of batches) others += (await endOfBatch(gateway, id)).counts.completed
        for (const id of calls) if ((await resultOf(gateway, id)) === null) others += 1
        const wallet = await walletOf(gateway)
        assert.strictEqual(wallet.held_balance, "0.00")
        assert.strictEqual(
          wallet.settled_balance,
          (before - price * (completed + others)).toFixed(2)
        )
        assert.match((await gateway.call("GET", "/metrics")).text, /^gateway_wallet_drift 0$/mu)
        const submits = (await submitsIn(gateway)).filter((id) => id !== alias.id)
        assert.strictEqual(new Set(submits).size, submits.length, "a task was submitted twice")

        const missing = () =>
          ended.filter(({ task_info: task }) => {
            const outcome = task.status === "completed" ? "task.succeeded" : "task.failed"
            return arrivals(receiver.received, task.id).types.join() !== `task.created,${outcome}`
          })
        await until(() => missing().length === 0, { what: "every webhook", millis: 120_000 })
        for (const id of ids) assert.strictEqual(arrivals(receiver.received, id).distinct, 2)
      },
      tooLong
    )

    it(
      "each batch is accepted once, ends with one event, and its sums match the ledger",
      async () => {
        const ended: Array<Batch> = []
        for (const id of batches) ended.push(await endOfBatch(gateway, id))
        assert.strictEqual(new Set(batches).size, 3 + killRounds)
        const { data } = (await gateway.call("GET", batchPath)).json
        assert.deepStrictEqual(
          data.map(({ id }: Batch) => id),
          batches.toReversed()
        )
        for (const { counts, receipt } of ended) {
          assert.strictEqual(counts.completed + counts.failed, counts.total)
          assert.strictEqual(receipt.held, "0.00")
          assert.strictEqual(receipt.captured, (price * counts.completed).toFixed(2))
          assert.strictEqual(receipt.released, (price * counts.failed).toFixed(2))
        }
        const bodiesOf = (id: string) =>
          new Set(
            receiver.received
              .filter(({ event }) => event.data.payload.id === id)
              .map(({ body, deliveryId }) => `${deliveryId} ${body}`)
          )
        await until(() => batches.every((id) => bodiesOf(id).size > 0), {
          what: "every webhook",
          millis: 120_000
        })
        for (const [n, id] of batches.entries()) {
          const [body, ...others] = bodiesOf(id)
          assert.isEmpty(others)
          const { counts } = JSON.parse(body?.slice(body.indexOf(" ")) ?? "").data.payload
          assert.deepStrictEqual(counts, ended[n]?.counts)
        }
      },
      tooLong
    )

    it(
      "the next process finds the task and the result of an MCP call, which was bought once",
      async () => {
        assert.strictEqual(new Set(calls).size, 3 + killRounds)
        for (const id of calls) {
          const error = await resultOf(gateway, id)
          const submits = (await submitsIn(gateway)).filter((it) => it === id).length
          // A submit in doubt is never repeated
          if (error === null) assert.strictEqual(submits, 1)
          else assert.strictEqual(error.code, 3004)
          assert.isAtMost(submits, 1)
        }
      },
      tooLong
    )
  })
})
