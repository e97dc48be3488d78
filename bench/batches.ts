/** The memory and the time of a batch of 50,000 requests in the sandbox, over a real Postgres. */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { serverUrl, stopServer } from "../test/support/postgresProcess.ts"
import { freePort } from "../test/support/spawnService.ts"
import { until } from "../test/support/until.ts"

const requests = Number(process.argv[2] ?? 50_000)
/** Of the prompt of each request. */
const promptBytes = Number(process.argv[3] ?? 2000)

const folder = await mkdtemp(join(tmpdir(), `gateway-postgres-${process.pid}-`))
const url = `http://127.0.0.1:${await freePort()}`
const adminToken = "operator-token-of-the-bench"
const service = spawn(process.execPath, ["src/main.ts"], {
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
    SIMULATOR_DELAY: "1 second"
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

/** Peak of the resident memory since the last reset, in MiB. */
const peak = (): number =>
  Number(/^VmHWM:\s+(\d+)/mu.exec(readFileSync(`/proc/${service.pid}/status`, "utf8"))?.[1]) / 1024

const report = (what: string, began: number) =>
  console.log(
    `${what}: ${((performance.now() - began) / 1000).toFixed(1)} s, peak ${peak().toFixed(0)} MiB`
  )

/** A file that is made as it is sent. */
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
  const wallet = await manage("GET", `/users/${id}/wallet`)
  console.log(`held ${wallet.held_balance}, available ${wallet.available_balance}`)
} finally {
  service.kill("SIGKILL")
  await stopServer(folder)
  await rm(folder, { recursive: true, force: true })
}
