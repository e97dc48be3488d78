/** Shared by the two job queues for Node: the vendor's queue API, the storage of pictures, and the route for tasks. */
import { mkdir, open, rename } from "node:fs/promises"
import { createServer } from "node:http"
import { join } from "node:path"
import { Agent } from "undici"

export const {
  DATABASE_URL: connectionString,
  DATA_DIR: folder,
  PORT,
  VENDOR_URL: vendor
} = process.env
/** The number of tasks in progress at once. */
export const concurrency = 64
export const pollSeconds = 2.5

const agent = new Agent({ connections: concurrency })

const call = async (method, path, body) => {
  const response = await agent.request({
    origin: vendor,
    path: path.replace(vendor, ""),
    method,
    headers: { authorization: "Key a:b", "content-type": "application/json" },
    body: body === undefined ? null : JSON.stringify(body)
  })
  const bytes = Buffer.from(await response.body.arrayBuffer())
  if (response.statusCode !== 200) throw new Error(`${path}: HTTP ${response.statusCode}`)
  return bytes
}

/** Pays for a job; returns its handle. */
export const submit = async (prompt) =>
  JSON.parse((await call("POST", "/fal-ai/bench", { prompt })).toString())

/** Stores the picture of a job that is done; `false` while it runs. */
export const fetchPicture = async (id, handle) => {
  const { status } = JSON.parse((await call("GET", handle.status_url)).toString())
  if (status !== "COMPLETED") return false
  const { images } = JSON.parse((await call("GET", handle.response_url)).toString())
  const bytes = await call("GET", images[0].url)
  await mkdir(folder, { recursive: true })
  const file = await open(join(folder, `${id}.part`), "w")
  await file.write(bytes)
  await file.sync()
  await file.close()
  await rename(join(folder, `${id}.part`), join(folder, `${id}.png`))
  return true
}

/** `POST /tasks` with a prompt. */
export const serve = (create) =>
  createServer((request, response) => {
    let body = ""
    request.on("data", (chunk) => (body += chunk.toString()))
    request.on("end", async () => {
      const isTask = request.method === "POST"
      if (isTask) await create(JSON.parse(body).prompt)
      response.writeHead(isTask ? 202 : 200).end("{}")
    })
  }).listen(Number(PORT), "127.0.0.1")

export const start =
  "UPDATE tasks SET status = 'processing', handle = $2, updated_at = now() WHERE id = $1"
export const complete = "UPDATE tasks SET status = 'completed', updated_at = now() WHERE id = $1"
