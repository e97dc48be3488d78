/**
 * A bare loop, for comparison: makes the HTTP calls of a task and writes its rows, one statement after the
 * other, without anything that a restart could resume. Started by `bench/lifecycle.ts`.
 */
import { createHash, randomUUID } from "node:crypto"
import { mkdir, open, rename } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { Pool } from "pg"
import type { QueryResult } from "pg"
import { Agent } from "undici"
import { post } from "./bareSender.ts"

const { dataDir, databaseUrl, hook, users, vendorUrl } = JSON.parse(process.argv[2] ?? "{}") as {
  readonly dataDir: string
  readonly databaseUrl: string
  /** The receiver of two webhooks per task. */
  readonly hook?: { readonly url: string; readonly ca: string }
  readonly users: ReadonlyArray<string>
  readonly vendorUrl: string
}
const price = 7_500_000
const trace = "a".repeat(32)
const pollMillis = 2500
const pool = new Pool({ connectionString: databaseUrl, max: 10, idleTimeoutMillis: 0 })
const agent = new Agent({ connections: 128 })
const hookAgent = new Agent({ connections: 128, connect: { ca: hook?.ca } })
const deliver = async (id: string, body: string) => {
  if (hook !== undefined) await post(hookAgent, hook.url, `whd_${id}`, Buffer.from(body))
}
const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** Statements are prepared, by text. */
const statement = (text: string, values: ReadonlyArray<unknown>) => ({
  name: createHash("md5").update(text).digest("hex"),
  text,
  values: [...values]
})

const transaction = async (
  work: (
    run: (text: string, values?: ReadonlyArray<unknown>) => Promise<QueryResult>
  ) => Promise<void>
) => {
  const client = await pool.connect()
  try {
    await client.query("BEGIN")
    await work((text, values = []) => client.query(statement(text, values)))
    await client.query("COMMIT")
  } catch (error) {
    await client.query("ROLLBACK")
    throw error
  } finally {
    client.release()
  }
}

const entry = (kind: "hold" | "capture") => `
  INSERT INTO wallet_entries (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, trace_id, created_at)
  VALUES ($1, $2, '${kind}', $3, $4, $5, '${kind}:' || $6::uuid, $6, $7, now())`

const event = `INSERT INTO events (id, created_at, user_id, type, task_id, body, trace_id) VALUES ($1, now(), $2, $3, $4, $5, $6)`

const move = async (
  run: (text: string, values?: ReadonlyArray<unknown>) => Promise<QueryResult>,
  user: string,
  settled: number,
  held: number
) => {
  const { rows } = await run(
    `UPDATE wallets SET settled = settled + $2, held = held + $3, entry_count = entry_count + 1
     WHERE user_id = $1 AND settled - held >= $3 RETURNING settled, held, entry_count`,
    [user, settled, held]
  )
  return rows[0] as { settled: string; held: string; entry_count: string }
}

const accept = async (id: string, user: string, body: string) =>
  transaction(async (run) => {
    await run(
      `INSERT INTO tasks (id, user_id, api_key_id, vendor, model, action, result_kind, status, body, sandbox, price, trace_id, created_at, updated_at)
       VALUES ($1, $2, 'key', 'fal', 'bench', 'generation', 'images', 'pending', $3, false, $4, $5, now(), now())`,
      [id, user, body, price, trace]
    )
    await run(
      `INSERT INTO runs (task_id, api_key_id, deadline_at) VALUES ($1, 'key', now() + interval '1 hour')`,
      [id]
    )
    await run(event, [`evt_${id}`, user, "task.created", id, Buffer.from(body), trace])
    const w = await move(run, user, 0, price)
    await run(
      `INSERT INTO holds (id, user_id, kind, amount, created_at) VALUES ($1, $2, 'task', $3, now())`,
      [id, user, price]
    )
    await run(entry("hold"), [user, w.entry_count, price, w.settled, w.held, id, trace])
  })

const finish = async (id: string, user: string, url: string) =>
  transaction(async (run) => {
    await run(`DELETE FROM runs WHERE task_id = $1`, [id])
    await run(
      `UPDATE tasks SET status = 'completed', result = $2, captured = $3, updated_at = now() WHERE id = $1`,
      [id, JSON.stringify([url]), price]
    )
    await run(`DELETE FROM holds WHERE id = $1`, [id])
    const w = await move(run, user, -price, -price)
    await run(entry("capture"), [user, w.entry_count, price, w.settled, w.held, id, trace])
    await run(event, [`evt_${id}e`, user, "task.succeeded", id, Buffer.from(url), trace])
  })

const call = async (method: "GET" | "POST", path: string, body?: string) => {
  const response = await agent.request({
    origin: vendorUrl,
    path: path.replace(vendorUrl, ""),
    method,
    headers: { authorization: "Key a:b", "content-type": "application/json" },
    ...(body === undefined ? {} : { body })
  })
  return Buffer.from(await response.body.arrayBuffer())
}

const json = async (method: "GET" | "POST", path: string, body?: string) =>
  JSON.parse((await call(method, path, body)).toString()) as Record<string, never>

const store = async (artifact: string, bytes: Buffer) => {
  const folder = join(dataDir, artifact.slice(0, 8))
  await mkdir(folder, { recursive: true })
  const file = await open(join(folder, `${artifact}.part`), "w")
  await file.write(bytes)
  await file.sync()
  await file.close()
  await rename(join(folder, `${artifact}.part`), join(folder, artifact))
}

const perform = async (id: string, user: string, body: string) => {
  const created = deliver(`${id}c`, body)
  await pool.query(
    statement(
      `INSERT INTO vendor_attempts (task_id, n, vendor, account_id, body_hash, state, started_at)
       VALUES ($1, 1, 'fal', 'bench', $2, 'submitting', now())`,
      [id, createHash("sha256").update(body).digest()]
    )
  )
  const job = await json("POST", "/fal-ai/bench", body)
  await pool.query(
    statement(
      `UPDATE vendor_attempts SET state = 'submitted', handle = $2, answered_at = now() WHERE task_id = $1 AND n = 1`,
      [id, JSON.stringify(job)]
    )
  )
  await pool.query(
    statement(
      `UPDATE tasks SET status = 'processing', started_at = now(), updated_at = now() WHERE id = $1`,
      [id]
    )
  )
  do await pause(pollMillis)
  while ((await json("GET", job["status_url"]!))["status"] !== "COMPLETED")
  const result = await json("GET", job["response_url"]!)
  const [{ url }] = result["images"]! as unknown as [{ url: string }]
  const bytes = await call("GET", url)
  const artifact = `art_${randomUUID().replaceAll("-", "")}`
  await pool.query(
    statement(
      `INSERT INTO artifacts (id, user_id, task_id, role, mime, bytes, sha256, created_at, expires_at)
       VALUES ($1, $2, $3, 'output', 'image/png', $4, $5, now(), now() + interval '1 day')`,
      [artifact, user, id, bytes.length, createHash("sha256").update(bytes).digest()]
    )
  )
  await store(artifact, bytes)
  await finish(id, user, artifact)
  await Promise.all([created, deliver(`${id}e`, artifact)])
}

/** The end of each task, in milliseconds since its create. */
const ends = new Map<string, Promise<number>>()

const server = createServer((request, response) => {
  const send = (status: number, value: unknown) => {
    response.writeHead(status, { "content-type": "application/json" })
    response.end(JSON.stringify(value))
  }
  const id = request.url?.slice("/tasks/".length) ?? ""
  if (request.method === "GET") {
    void ends.get(id)?.then((millis) => send(200, { millis }))
    return
  }
  let body = ""
  request.on("data", (chunk: Buffer) => (body += chunk.toString()))
  request.on("end", async () => {
    const began = performance.now()
    const created = randomUUID()
    const user = users[Number(request.headers["x-user"]) % users.length]!
    await accept(created, user, body)
    send(202, { id: created })
    ends.set(
      created,
      perform(created, user, body).then(() => performance.now() - began)
    )
  })
})
server.listen(0, "127.0.0.1", () =>
  process.send?.({ port: (server.address() as AddressInfo).port })
)
process.on("disconnect", () => process.exit(0))
