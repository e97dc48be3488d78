/**
 * The memory and the time of a batch of 50,000 requests over a real Postgres: in OpenAI's form in the sandbox, or in
 * Anthropic's form at a vendor in this process. `HEAP_MIB` limits the heap of the service.
 */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Readable } from "node:stream"
import { serverUrl, stopServer } from "../test/support/postgresProcess.ts"
import { freePort } from "../test/support/spawnService.ts"
import { until } from "../test/support/until.ts"

const requests = Number(process.argv[2] ?? 50_000)
/** The bytes of each request's prompt. */
const promptBytes = Number(process.argv[3] ?? 2000)

const isAnthropic = process.argv[4] === "anthropic"
const heap = process.env["HEAP_MIB"]

/** Reads a batch of this program as it arrives, and generates its results while they are read. */
const vendor = createServer(async (request, response) => {
  const path = request.url ?? ""
  if (request.method === "POST") {
    let mark: string | undefined
    for await (const chunk of request) {
      mark ??= /"custom_id":"(.{10})request-0"/u.exec(String(chunk))?.[1]
    }
    batch.mark = mark ?? ""
  }
  if (path.endsWith("/results")) {
    const results = function* () {
      for (let n = 0; n < requests; n += 1) yield resultOf(`${batch.mark}request-${n}`)
    }
    response.writeHead(200, { "content-type": "application/x-jsonl" })
    return void Readable.from(results()).pipe(response)
  }
  response.writeHead(200, { "content-type": "application/json" })
  response.end(
    JSON.stringify({
      id: "msgbatch_1",
      processing_status: "ended",
      created_at: new Date().toISOString(),
      results_url: "results",
      request_counts: { processing: 0, succeeded: requests, errored: 0, canceled: 0, expired: 0 }
    })
  )
})
const batch = { mark: "" }
const models = ["claude-haiku-4-5", "claude-sonnet-4-5"]

const resultOf = (customId: string) => {
  const model = models[Number(/\d+$/u.exec(customId)?.[0]) % models.length]
  const usage = { input_tokens: 500, output_tokens: 20 }
  const content = [{ type: "text", text: "word ".repeat(20) }]
  const message = { id: "msg_1", type: "message", role: "assistant", model, content, usage }
  return Buffer.from(
    `${JSON.stringify({ custom_id: customId, result: { type: "succeeded", message } })}\n`
  )
}

const folder = await mkdtemp(join(tmpdir(), `gateway-postgres-${process.pid}-`))
const url = `http://127.0.0.1:${await freePort()}`
const adminToken = "operator-token-of-the-bench"
const vendorPort = await freePort()
vendor.listen(vendorPort, "127.0.0.1")
const limits = heap === undefined ? [] : [`--max-old-space-size=${heap}`]
const service = spawn(process.execPath, [...limits, "src/main.ts"], {
  stdio: ["ignore", "ignore", "inherit"],
  env: {
    PATH: process.env.PATH,
    HOST: "127.0.0.1",
    PORT: new URL(url).port,
    DATA_DIR: join(folder, "gateway"),
    DATABASE_URL: await serverUrl(folder),
    BASE_URL: url,
    ADMIN_TOKEN: adminToken,
    MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
    SIMULATOR_DELAY: "1 second",
    ...(isAnthropic
      ? {
          ANTHROPIC_API_KEY: "sk-ant",
          ANTHROPIC_BASE_URL: `http://127.0.0.1:${vendorPort}/v1`,
          EGRESS_ALLOW: "127.0.0.1"
        }
      : {})
  }
})

const send = async (token: string, method: string, path: string, body?: object) => {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" })
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`)
  return JSON.parse(text)
}
const manage = (method: string, path: string, body?: object) =>
  send(adminToken, method, `/manage/v1${path}`, body)

/** The peak of the resident memory since the last reset, in MiB. */
const peak = (): number =>
  Number(/^VmHWM:\s+(\d+)/mu.exec(readFileSync(`/proc/${service.pid}/status`, "utf8"))?.[1]) / 1024

const report = (what: string, began: number) =>
  console.log(
    `${what}: ${((performance.now() - began) / 1000).toFixed(1)} s, peak ${peak().toFixed(0)} MiB`
  )

/** A body that is generated while it is sent. */
const messages = function* () {
  const prompt = "word ".repeat(promptBytes / 5)
  yield Buffer.from('{"requests":[')
  for (let n = 0; n < requests; n += 1) {
    const params = {
      model: models[n % models.length],
      max_tokens: 50,
      messages: [{ role: "user", content: `${prompt}${n}` }]
    }
    const comma = n === 0 ? "" : ","
    yield Buffer.from(`${comma}${JSON.stringify({ custom_id: `request-${n}`, params })}`)
  }
  yield Buffer.from("]}")
}

/** Creates a batch in Anthropic's form and waits until it has ended. */
const runMessages = async (key: string) => {
  const headers = { "x-api-key": key, "content-type": "application/json" }
  let began = performance.now()
  const answer = await fetch(`${url}/v1/messages/batches`, {
    method: "POST",
    headers,
    body: ReadableStream.from(messages()),
    duplex: "half"
  } as RequestInit)
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${answer.status} ${text.slice(0, 500)}`)
  report(`create of ${requests} requests`, began)
  began = performance.now()
  const { id } = JSON.parse(text)
  const { request_counts: counts } = await until(
    async () => {
      const json = await send(key, "GET", `/v1/messages/batches/${id}`)
      return json.processing_status === "ended" ? json : undefined
    },
    { what: "the end of the batch", millis: 1_800_000 }
  )
  report(`submit, results and ${counts.succeeded} receipts`, began)
}

/** A file that is generated while it is sent. */
const lines = function* () {
  const prompt = "word ".repeat(promptBytes / 5)
  for (let n = 0; n < requests; n += 1) {
    yield Buffer.from(
      `${JSON.stringify({
        custom_id: `request-${n}`,
        method: "POST",
        url: "/v1/chat/completions",
        body: {
          model: "gpt-4o-mini",
          messages: [{ role: "user", content: `${prompt}${n}` }],
          max_tokens: 50
        }
      })}\n`
    )
  }
}

/** Uploads a file, creates its batch and waits until it has ended. */
const runFile = async (key: string) => {
  const boundary = "bench"
  const form = function* () {
    yield Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n`
    )
    yield* lines()
    yield Buffer.from(`\r\n--${boundary}--\r\n`)
  }
  let began = performance.now()
  const uploaded = await fetch(`${url}/v1/files`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": `multipart/form-data; boundary=${boundary}`
    },
    body: ReadableStream.from(form()),
    duplex: "half"
  } as RequestInit)
  const file = (await uploaded.json()) as { readonly id: string; readonly bytes: number }
  report(`upload of ${(file.bytes / 2 ** 20).toFixed(0)} MiB`, began)
  began = performance.now()
  const created = await send(key, "POST", "/v1/batches", {
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h"
  })
  report(`create of ${requests} requests`, began)
  began = performance.now()
  const done = await until(
    async () => {
      const json = await send(key, "GET", `/v1/batches/${created.id}`)
      return json.status === "completed" ? json : undefined
    },
    { what: "the end of the batch", millis: 1_800_000 }
  )
  report(`results and ${done.request_counts.completed} receipts`, began)
}

try {
  await until(
    () =>
      fetch(`${url}/readyz`).then(
        ({ status }) => status === 200,
        () => false
      ),
    { what: "the service", millis: 300_000 }
  )
  const { id } = await manage("POST", "/users", { email: "bench@example.com" })
  await manage("POST", `/users/${id}/top-ups`, { amount: "1000000.00" })
  const { key } = await manage("POST", `/users/${id}/api-keys`, {
    name: "bench",
    scopes: ["inference", "manage"]
  })
  report("before", performance.now())
  await (isAnthropic ? runMessages(key) : runFile(key))
  const wallet = await manage("GET", `/users/${id}/wallet`)
  console.log(`held ${wallet.held_balance}, available ${wallet.available_balance}`)
} finally {
  service.kill("SIGKILL")
  vendor.close()
  await stopServer(folder)
  await rm(folder, { recursive: true, force: true })
}
