import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { MockVendor, startVendorServer } from "../../../src/testing/index.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { killAfter, killRounds } from "../../support/killRounds.ts"
import { pause, until } from "../../support/until.ts"
import { capturesIn, receiptsOf, taskIdOf } from "../../support/vendorBatches.ts"

/** Receipts are written 500 at a time, so a kill while results are read leaves some of them. */
const linesMax = 1200
const failing = linesMax / 100
const responsesAtOnce = 3
/** A different model from that of the batches, so that its usage is only that of the responses. */
const responseModel = "gpt-4o"
const tooLong = 300_000 + killRounds * 120_000

const isFailing = (n: number) => n % 100 === 7

const linesOf = (round: number) =>
  Array.from({ length: linesMax }, (_, n) =>
    JSON.stringify({
      custom_id: isFailing(n) ? `fails ${n}` : `${round} ${n}`,
      method: "POST",
      url: "/v1/chat/completions",
      body: {
        model: "gpt-4o-mini",
        messages: [{ role: "user", content: `Say ${n}` }],
        max_tokens: 20 + (n % 7)
      }
    })
  ).join("\n")

/** The requests of a batch of messages alternate between these. */
const messageModels = ["claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5"]

const messagesOf = (round: number) =>
  Array.from({ length: linesMax }, (_, n) => ({
    custom_id: isFailing(n) ? `fails-${n}` : `${round}-${n}`,
    params: {
      model: messageModels[n % messageModels.length] ?? "",
      messages: [{ role: "user", content: `Say ${n}` }],
      max_tokens: 20 + (n % 7)
    }
  }))

interface Submitted {
  readonly requests: ReadonlyArray<{ readonly custom_id: string }>
}

/** Repeats the upload until it has an id, however often the service is killed. */
const uploadSurely = (gateway: GatewayProcess, key: string, text: string) =>
  until<string>(
    async () => {
      const body = new FormData()
      body.set("purpose", "batch")
      body.set("file", new File([text], "requests.jsonl"))
      const answer = await fetch(`${gateway.url}/v1/files`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body
      }).catch(() => undefined)
      return /file-[0-9a-f]{32}/u.exec((await answer?.text().catch(() => "")) ?? "")?.[0]
    },
    { what: "an uploaded file", millis: 180_000 }
  )

/** Repeats the same create until its response contains an id, however often the service is killed. */
const createSurely = (
  gateway: GatewayProcess,
  path: string,
  body: object,
  key: string,
  id: RegExp
) =>
  until<string>(
    async () => {
      const answer = await gateway
        .call("POST", path, body, { "idempotency-key": key })
        .catch(() => undefined)
      return id.exec(answer?.text ?? "")?.[0]
    },
    { what: `the response to ${key}`, millis: 180_000 }
  )

const createBatch = async (gateway: GatewayProcess, key: string, round: number) => {
  const file = await uploadSurely(gateway, key, linesOf(round))
  const body = {
    input_file_id: file,
    endpoint: "/v1/chat/completions",
    completion_window: "24h"
  }
  return createSurely(gateway, "/v1/batches", body, file, /batch_[0-9a-f]{32}/u)
}

const createMessageBatch = (gateway: GatewayProcess, round: number) => {
  const body = { requests: messagesOf(round) }
  const id = /msgbatch_[0-9a-f]{32}/u
  return createSurely(gateway, "/v1/messages/batches", body, `round ${round}`, id)
}

const createResponse = (gateway: GatewayProcess, input: string, stream: boolean) => {
  const body = { model: responseModel, input, background: true, max_output_tokens: 100 }
  const sent = stream ? { ...body, stream } : body
  return createSurely(gateway, "/v1/responses", sent, input, /resp_[0-9a-f]{32}/u)
}

/** The outcome of a job's task, once it has ended. */
const endOf = async (gateway: GatewayProcess, id: string): Promise<string> => {
  const path = `/manage/v1/tasks/${taskIdOf(id)}`
  const task = await until(
    async () => {
      const { json } = await gateway.call("GET", path)
      return ["completed", "failed"].includes(json.status) && json
    },
    { what: `the end of ${id}`, millis: 180_000 }
  )
  // A submit in doubt is never repeated
  if (task.status === "failed") assert.strictEqual(task.error.code, 3004)
  return task.status
}

/** The same for several, not all of which may have failed. */
const endsOf = async (gateway: GatewayProcess, ids: ReadonlyArray<string>) => {
  const ends: Array<string> = []
  for (const id of ids) ends.push(await endOf(gateway, id))
  assert.include(ends, "completed")
  return ends
}

const completedOf = (ends: ReadonlyArray<string>) =>
  ends.filter((status) => status === "completed").length

type Vendor = Awaited<ReturnType<typeof startVendorServer>>

const asked = ({ requests }: Vendor, method: string, path: RegExp) =>
  requests.filter((it) => it.method === method && path.test(it.path))

/** Waits until the condition holds and no longer, because a kill follows immediately. */
const soon = async (is: () => boolean | Promise<boolean>) => {
  while (!(await is())) await pause(2)
}

/** docs/reference/vendor-batches.md#results, docs/reference/background.md#price */
describe("kill -9 between the upload, accept, submit, polls, receipts and settlement of vendors' jobs", () => {
  let openai: Vendor
  let anthropic: Vendor
  let gateway: GatewayProcess
  const batches: Array<string> = []
  const messageBatches: Array<string> = []
  const responses: Array<string> = []
  const receipts = new Map<string, { readonly count: number; readonly sum: bigint }>()

  /** The first kill of a round: while its jobs are accepted or submitted. */
  const firstKill = async (round: number) => {
    const submits = () => asked(openai, "POST", /^\/v1\/batches$/u).length
    const before = submits()
    if (round % 2 === 0) await pause(killAfter(round, 700))
    else await soon(() => submits() > before)
    await gateway.kill()
  }

  /** The second kill: while the jobs run or their results are read. */
  const secondKill = async (round: number, batch: string) => {
    const polls = () => asked(openai, "GET", /^\/v1\/batches\/./u).length
    const before = polls()
    if (round % 2 === 0) await soon(() => polls() > before)
    else await soon(() => hasReceipts(batch))
    await gateway.kill()
  }

  const hasReceipts = async (batch: string) => {
    const path = `/manage/v1/tasks/${taskIdOf(batch)}/receipts?limit=1`
    return (await gateway.call("GET", path)).json.data.length > 0
  }

  /**
   * The third kill: while the results of requests to several models are read, before the first receipt and after it.
   */
  const thirdKill = async (round: number, batch: string) => {
    const results = () => asked(anthropic, "GET", /\/results$/u).length
    const before = results()
    const isReading = async () => results() > before || (await hasReceipts(batch))
    await soon(round % 2 === 0 ? isReading : () => hasReceipts(batch))
    await gateway.kill()
  }

  beforeAll(async () => {
    const start = (vendor: "openai" | "anthropic") =>
      startVendorServer(vendor, { script: { default: [MockVendor.result("300 millis")] } })
    openai = await start("openai")
    anthropic = await start("anthropic")
    gateway = await GatewayProcess.start({
      env: { ...openai.env, ...anthropic.env, EMBEDDED_DURABLE: "false" }
    })
    const { key } = await gateway.makeUser()
    gateway.useKey(key)
    for (let round = 0; round < killRounds; round += 1) {
      const batch = createBatch(gateway, key, round)
      const messageBatch = createMessageBatch(gateway, round)
      const others = Array.from({ length: responsesAtOnce }, (_, n) =>
        createResponse(gateway, `${round} ${n}`, n === 2)
      )
      await firstKill(round)
      await gateway.start()
      batches.push(await batch)
      messageBatches.push(await messageBatch)
      responses.push(...(await Promise.all(others)))
      await secondKill(round, await batch)
      await gateway.start()
      await thirdKill(round, await messageBatch)
      await gateway.start()
    }
    for (const id of [...batches, ...messageBatches]) {
      await endOf(gateway, id)
      receipts.set(id, await receiptsOf(gateway, id))
    }
  }, tooLong)
  afterAll(async () => {
    await gateway.close()
    await openai.stop()
    await anthropic.stop()
  })

  it(
    "a batch is bought at most once, and has a receipt for each of its requests",
    async () => {
      const ends = await endsOf(gateway, batches)
      const submitted = asked(openai, "POST", /^\/v1\/batches$/u).map(
        ({ json }) => (json as { metadata: { gateway_task: string } }).metadata.gateway_task
      )
      assert.strictEqual(new Set(submitted).size, submitted.length, "a batch was submitted twice")
      for (const [n, id] of batches.entries()) {
        const isDone = ends[n] === "completed"
        assert.strictEqual(receipts.get(id)?.count, isDone ? linesMax : 0, `receipts of ${id}`)
        const { json } = await gateway.call("GET", `/v1/batches/${id}`)
        if (!isDone) {
          assert.strictEqual(json.errors.data[0].code, "3004")
          continue
        }
        assert.deepStrictEqual(json.request_counts, {
          total: linesMax,
          completed: linesMax - failing,
          failed: failing
        })
        const output = await gateway.call("GET", `/v1/files/${json.output_file_id}/content`)
        assert.strictEqual(output.text.trim().split("\n").length, linesMax - failing)
      }
    },
    tooLong
  )

  it(
    "a batch of messages is bought at most once, and has a receipt for each of its requests",
    async () => {
      const ends = await endsOf(gateway, messageBatches)
      const submitted = asked(anthropic, "POST", /^\/v1\/messages\/batches$/u).map(({ json }) =>
        (json as Submitted).requests[0]?.custom_id.slice(0, 10)
      )
      assert.strictEqual(new Set(submitted).size, submitted.length, "a batch was submitted twice")
      for (const [n, id] of messageBatches.entries()) {
        const isDone = ends[n] === "completed"
        assert.strictEqual(receipts.get(id)?.count, isDone ? linesMax : 0, `receipts of ${id}`)
        const { json } = await gateway.call("GET", `/v1/messages/batches/${id}`)
        assert.deepInclude(json.request_counts, {
          processing: 0,
          succeeded: isDone ? linesMax - failing : 0,
          errored: isDone ? failing : linesMax
        })
        const output = await gateway.call("GET", `/v1/messages/batches/${id}/results`)
        const names = output.text
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line).custom_id)
        assert.deepStrictEqual(
          names,
          messagesOf(n).map((it) => it.custom_id)
        )
      }
    },
    tooLong
  )

  it(
    "no result is stored twice",
    async () => {
      const files = (await gateway.call("GET", "/v1/files?purpose=batch_output&limit=100")).json
      const done = completedOf(await endsOf(gateway, batches))
      const messagesDone = completedOf(await endsOf(gateway, messageBatches))
      // Batches in OpenAI's form have a file of results and a file of errors
      assert.strictEqual(files.data.length, 2 * done + messagesDone)
    },
    tooLong
  )

  it(
    "a background response ends once, is bought at most once and charged once, however often it is read",
    async () => {
      assert.strictEqual(new Set(responses).size, killRounds * responsesAtOnce)
      const ends = await endsOf(gateway, responses)
      const inputs = asked(openai, "POST", /^\/v1\/responses$/u).map(
        ({ json }) => (json as { readonly input: string }).input
      )
      assert.strictEqual(new Set(inputs).size, inputs.length, "a response was submitted twice")
      const { json: tasks } = await gateway.call("GET", "/manage/v1/tasks?limit=100")
      assert.lengthOf(tasks.data, killRounds * (2 + responsesAtOnce))
      for (const [n, id] of responses.entries()) {
        for (let read = 0; read < 2; read += 1) {
          const { json } = await gateway.call("GET", `/v1/responses/${id}`)
          assert.strictEqual(json.status, ends[n])
        }
        const { json } = await gateway.call("GET", `/manage/v1/tasks/${taskIdOf(id)}`)
        const kinds = json.entries.map((entry: { kind: string }) => entry.kind)
        const expected =
          ends[n] === "completed" ? ["hold", "capture", "release"] : ["hold", "release"]
        assert.deepStrictEqual(kinds, expected)
      }
      const usage = (await gateway.call("GET", "/manage/v1/usage?group_by=model")).json
      const used = usage.data.find((it: { readonly model: string }) => it.model === responseModel)
      assert.strictEqual(used.tasks, completedOf(ends))
    },
    tooLong
  )

  it(
    "no hold stays open, and the capture of a batch is exactly the sum of its receipts",
    async () => {
      await endsOf(gateway, [...batches, ...messageBatches, ...responses])
      const wallet = (await gateway.call("GET", "/manage/v1/wallet")).json
      assert.strictEqual(wallet.held_balance, "0.00")
      const metrics = (await gateway.call("GET", "/metrics")).text
      assert.match(metrics, /^gateway_wallet_drift 0$/mu)
      await gateway.kill()
      const sums = [...receipts].map(([id, { sum }]) => [taskIdOf(id), sum] as const)
      assert.deepStrictEqual(await capturesIn(gateway.dataDir), new Map(sums))
    },
    tooLong
  )
})
