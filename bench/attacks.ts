/** The attacks of `hostile.ts`. Each runs until this process is killed or its time is over. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { connect } from "node:net"
import { generateKey } from "../src/users/KeyText.ts"
import { pngOfBytes } from "../test/support/media.ts"

export interface Target {
  readonly port: number
  /** The keys of a user with credits and of one without, with both scopes. */
  readonly rich: string
  readonly poor: string
  /** Unfinished tasks of the first user. */
  readonly tasks: ReadonlyArray<string>
}

interface Sent {
  readonly method?: string
  readonly path: string
  readonly key?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
}

const secondsMax = 60
const requestsMax = 100_000
const create = "/vendors/alibaba/v1/text-to-image-preview/generation"
const json = (value: unknown) => Buffer.from(JSON.stringify(value))

const bytesOf = ({ body, headers = {}, key, method = "POST", path }: Sent): Buffer => {
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "Host: bench",
    ...(key === undefined ? [] : [`Authorization: Bearer ${key}`]),
    ...(body === undefined ? [] : ["Content-Type: application/json"]),
    ...(body === undefined ? [] : [`Content-Length: ${body.length}`]),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  ]
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`)
  return body === undefined ? head : Buffer.concat([head, body])
}

const statuses: Record<string, number> = {}
let requests = 0

const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** Sends requests one after the other on several connections, and reopens those that the service closes. */
const hammer = (port: number, connections: number, next: (n: number) => Buffer) => {
  const one = () => {
    if (requests >= requestsMax) return
    const socket = connect(port, "127.0.0.1")
    socket.setNoDelay(true)
    const send = () => {
      if (requests >= requestsMax) {
        socket.destroy()
        return
      }
      requests += 1
      socket.write(next(requests))
    }
    let received = ""
    socket.on("connect", send)
    socket.on("error", () => {})
    socket.on("close", () => void pause(100).then(one))
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1")
      const head = received.indexOf("\r\n\r\n")
      if (head < 0) return
      const length = Number(/\r\ncontent-length: (\d+)/iu.exec(received)?.[1] ?? -1)
      const isWhole =
        length < 0 ? received.endsWith("0\r\n\r\n") : received.length >= head + 4 + length
      if (!isWhole) return
      const status = received.slice(9, 12)
      statuses[status] = (statuses[status] ?? 0) + 1
      received = ""
      send()
    })
  }
  for (let n = 0; n < connections; n += 1) one()
}

/** Leaves connections open after sending; `more` is sent every second. */
const hold = (port: number, count: number, first: (n: number) => Buffer, more?: Buffer) => {
  for (let n = 0; n < count; n += 1) {
    const socket = connect(port, "127.0.0.1")
    socket.on("error", () => {})
    socket.once("data", (chunk) => {
      const status = chunk.toString("latin1").slice(9, 12)
      statuses[status] = (statuses[status] ?? 0) + 1
    })
    socket.resume()
    socket.write(first(n))
    if (more !== undefined) setInterval(() => socket.writable && socket.write(more), 1000)
  }
}

/** A host that sends one byte per second. */
const tricklingHost = () =>
  new Promise<string>((resolve) => {
    const server = createServer((_request, response) => {
      response.writeHead(200, { "content-length": "1000000" })
      const timer = setInterval(() => response.write("a"), 1000)
      response.on("close", () => clearInterval(timer))
    }).listen(0, "127.0.0.1", () =>
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    )
  })

const getTask = (id: string) =>
  json({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "get_task", arguments: { task_id: id, wait_seconds: 45 } }
  })

const mcp = { "mcp-protocol-version": "2025-11-25" }

export const attacks: Record<string, (target: Target) => void | Promise<void>> = {
  "downloads with trickling URLs": async ({ port, rich: key }) => {
    const host = await tricklingHost()
    const path = "/vendors/alibaba/v1/image-edit/generation"
    const bodyOf = (n: number) => json({ prompt: "a", n: 1, images: [`${host}/${n}`] })
    hammer(port, 4, (n) => bytesOf({ path, key, body: bodyOf(n) }))
    await pause(3000)
    // Enough requests; for the rest of the time the connections stay open
    requests = requestsMax
  },
  "creates without credits": ({ poor: key, port }) => {
    const body = json({ prompt: "A lighthouse", n: 1 })
    hammer(port, 64, () => bytesOf({ path: create, key, body }))
  },
  "anonymous POSTs to /mcp": ({ port }) => {
    const request = bytesOf({ path: "/mcp", body: json({}) })
    hammer(port, 64, () => request)
  },
  "event streams of tasks": ({ port, rich: key, tasks }) => {
    const headers = { accept: "text/event-stream" }
    hold(port, 700, (n) =>
      bytesOf({ method: "GET", path: `${create}/${tasks[n % tasks.length]}`, key, headers })
    )
  },
  "waits, by Prefer and MCP": ({ port, rich: key, tasks }) => {
    const taskOf = (n: number) => tasks[n % tasks.length] ?? ""
    const wait = { prefer: "wait=60" }
    hammer(port, 350, (n) =>
      n % 2 === 0
        ? bytesOf({ method: "GET", path: `${create}/${taskOf(n)}`, key, headers: wait })
        : bytesOf({ path: "/mcp", key, headers: mcp, body: getTask(taskOf(n)) })
    )
  },
  "JSON bombs of 10 MiB": ({ poor: key, port }) => {
    const body = Buffer.from(`[${"{},".repeat(10 * 349_525)}{}]`)
    const request = bytesOf({ path: create, key, body })
    hammer(port, 4, () => request)
  },
  "dry runs of 75 MB": ({ poor: key, port }) => {
    const image = Buffer.from(pngOfBytes(5_600_000)).toString("base64")
    const body = json({ prompt: "a", images: Array.from({ length: 10 }, () => image) })
    const path = "/vendors/google/v1/image-edit-pro/edit?dry_run=true"
    const request = bytesOf({ path, key, body })
    hammer(port, 4, () => request)
  },
  "chats of 1 MiB": ({ port, rich: key }) => {
    const content = "Tell me of a lighthouse. ".repeat(41_000)
    const body = json({ model: "gpt-4o", max_tokens: 10, messages: [{ role: "user", content }] })
    const request = bytesOf({ path: "/v1/chat/completions", key, body })
    hammer(port, 64, () => request)
  },
  "downloads of files": async ({ port, rich: key }) => {
    const form = new FormData()
    form.set("purpose", "batch")
    form.set("file", new Blob([Buffer.alloc(64 * 1024 * 1024, "a")]), "a.jsonl")
    const files = `http://127.0.0.1:${port}/v1/files`
    const headers = { authorization: `Bearer ${key}` }
    const made = await fetch(files, { method: "POST", headers, body: form })
    const { id } = (await made.json()) as { readonly id: string }
    const request = bytesOf({ method: "GET", path: `/v1/files/${id}/content`, key })
    hold(port, 64, () => request, request)
  },
  "large responses": ({ port, rich: key }) => {
    const body = json({ model: "mistral-embed", input: "Lighthouse" })
    const request = bytesOf({ path: "/vendors/mistral/v1/embeddings", key, body })
    hold(port, 64, () => request, request)
  },
  "wrong keys": ({ port }) => {
    const body = json({ prompt: "A lighthouse", n: 1 })
    hammer(port, 64, (n) =>
      n % 2 === 0
        ? bytesOf({ path: create, key: generateKey(), body })
        : bytesOf({ method: "GET", path: "/manage/v1/tasks", key: generateKey() })
    )
  },
  "lists, and bodies that trickle": ({ port, rich: key }) => {
    const lists = [
      "/tasks?limit=100",
      "/tasks?limit=100&metadata[a]=b",
      "/wallet/entries?limit=100",
      "/webhook-deliveries?limit=100&status=failed",
      "/usage?group_by=day,key,vendor,model"
    ]
    hammer(port, 32, (n) =>
      bytesOf({ method: "GET", path: `/manage/v1${lists[n % lists.length]}`, key })
    )
    const length = { "content-length": "2000000", "content-type": "application/json" }
    hold(
      port,
      200,
      () => bytesOf({ path: create, key, headers: length }),
      Buffer.from(" ".repeat(1000))
    )
  }
}

if (process.argv[1] === import.meta.filename) {
  const { name, target } = JSON.parse(process.argv[2] ?? "{}") as {
    readonly name: string
    readonly target: Target
  }
  setTimeout(() => process.exit(0), secondsMax * 1000)
  process.on("message", () => {
    process.send?.(statuses)
  })
  await attacks[name]?.(target)
}
