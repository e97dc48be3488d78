/**
 * Bodies that cost a process far more than their sender, and large ones that need not. For each one it prints the
 * response, the latency of `/healthz` for others in the meantime, and the longest turn of the event loop.
 * `node bench/jsonBombs.ts [folder of another version] [name of an attack]`
 */
import { fork, spawn } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { request } from "node:http"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const mebi = 1024 * 1024

/** A request that is sent over this many connections at once. */
export interface HostileBody {
  readonly name: string
  readonly path: string
  readonly type?: string
  readonly connections?: number
  readonly times?: number
  readonly body: () => Buffer
}

const repeated = (start: string, part: string, bytes: number, end: string): Buffer =>
  Buffer.concat([
    Buffer.from(start),
    Buffer.from(part.repeat(Math.ceil(bytes / part.length))),
    Buffer.from(end)
  ])

const chat = "/v1/chat/completions"
const create = "/vendors/alibaba/v1/image-edit/generation"
const objects = (bytes: number) => repeated('{"a":[', "{},", bytes, "1]}")
const model = '{"model":"gpt-4o","max_tokens":5,"messages":[{"role":"user","content":'

const form = (parts: number): Buffer =>
  repeated("", '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n', parts * 52, "--b--")

const csv = JSON.stringify('a;b,{"c":[1]},"x"\n'.repeat(580_000))

export const hostileBodies: ReadonlyArray<HostileBody> = [
  ...[10, 30, 127].map((size) => ({
    name: `${size} MiB of objects`,
    path: chat,
    body: () => objects(size * mebi)
  })),
  { name: "30 MiB of objects, a create", path: create, body: () => objects(30 * mebi) },
  { name: "30 MiB of objects, MCP", path: "/mcp", body: () => objects(30 * mebi) },
  {
    name: "30 MiB of objects, management",
    path: "/manage/v1/api-keys",
    body: () => objects(30 * mebi)
  },
  { name: "1 MiB of lists in lists", path: chat, body: () => Buffer.alloc(mebi, "[") },
  {
    name: "30 MiB of tiny form parts",
    path: "/v1/images/edits",
    type: "multipart/form-data; boundary=b",
    body: () => form((30 * mebi) / 52)
  },
  {
    name: "1 MiB of objects, 4 connections",
    path: chat,
    connections: 4,
    times: 20,
    body: () => objects(mebi - 20)
  },
  {
    name: "just below the limit, 4 connections",
    path: chat,
    connections: 4,
    times: 20,
    body: () =>
      Buffer.from(
        `{"x":{${Array.from({ length: 22_000 }, (_, index) => `"k${index}":1`).join(",")}}}`
      )
  },
  {
    name: "valid: 10 MiB of CSV in a prompt",
    path: chat,
    body: () => Buffer.from(`${model}${csv}}]}`)
  },
  {
    name: "valid: 120 MiB of Base64 in a chat",
    path: chat,
    body: () => repeated(`${model}"data:image/png;base64,`, "A".repeat(1000), 120 * mebi, '"}]}')
  },
  {
    name: "120 MiB of Base64 in a create",
    path: create,
    body: () => repeated('{"prompt":"a","images":["', "A".repeat(1000), 120 * mebi, 'A"]}')
  }
]

const send = (url: string, key: string, attack: HostileBody, body: Buffer) =>
  new Promise<string>((done) => {
    const sent = request(
      new URL(attack.path, url),
      {
        method: "POST",
        agent: false,
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": attack.type ?? "application/json",
          "content-length": body.length,
          "idempotency-key": crypto.randomUUID()
        }
      },
      (response) => {
        let text = ""
        response.on("data", (chunk: Buffer) => (text = (text + chunk.toString()).slice(0, 600)))
        response.on("error", () => {})
        response.on("close", () => {
          sent.destroy()
          const code = /"code":(\d+)/u.exec(text)?.[1] ?? ""
          done(`${response.statusCode} ${code}`)
        })
      }
    )
    sent.on("error", (error: NodeJS.ErrnoException) => done(`closed: ${error.code}`))
    sent.end(body)
  })

/** Sends an attack as often as it specifies. Returns the different responses. */
export const runHostile = async (
  url: string,
  key: string,
  attack: HostileBody,
  body = attack.body()
): Promise<ReadonlyArray<string>> => {
  const answers = await Promise.all(
    Array.from({ length: attack.connections ?? 1 }, async () => {
      const seen = new Set<string>()
      for (let n = 0; n < (attack.times ?? 1); n += 1) seen.add(await send(url, key, attack, body))
      return [...seen]
    })
  )
  return [...new Set(answers.flat())]
}

/**
 * Runs in the gateway: prints the longest turn of the event loop since the last signal, in milliseconds of CPU, which
 * other programs on the machine do not lengthen, and the peak memory.
 */
const loopDelay = `
const cpu = () => { const { system, user } = process.threadCpuUsage(); return (system + user) / 1000 }
let longest = 0
let last = cpu()
const turn = () => {
  const now = cpu()
  longest = Math.max(longest, now - last)
  last = now
  setTimeout(turn, 1)
}
turn()
process.on("SIGUSR2", () => {
  console.log("loop " + longest.toFixed(0) + " " + Math.round(process.resourceUsage().maxRSS / 1024))
  longest = 0
})
`

const freePort = () =>
  new Promise<number>((done) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => done(typeof address === "object" ? (address?.port ?? 0) : 0))
    })
  })

const pause = (millis: number) => new Promise((done) => setTimeout(done, millis))

const start = async (folder: string) => {
  const port = await freePort()
  const dataDir = await mkdtemp(join(tmpdir(), "gateway-bombs-"))
  const url = `http://127.0.0.1:${port}`
  const child = spawn(
    process.execPath,
    [
      ...(process.env["NODE_FLAGS"]?.split(" ") ?? []),
      "--import",
      `data:text/javascript,${encodeURIComponent(loopDelay)}`,
      "src/main.ts"
    ],
    {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        HOST: "127.0.0.1",
        PORT: String(port),
        BASE_URL: url,
        DATA_DIR: dataDir,
        LOG_FORMAT: "json",
        MANAGE_RATE_LIMIT_PER_MINUTE: "0",
        SHUTDOWN_DELAY: "0 seconds"
      }
    }
  )
  let output = ""
  const note = (chunk: Buffer) => (output += chunk.toString())
  child.stdout.on("data", note)
  child.stderr.on("data", note)
  const found = async (pattern: RegExp, from: number) => {
    for (let n = 0; n < 1200; n += 1) {
      const match = pattern.exec(output.slice(from))
      if (match !== null) return match
      if (child.exitCode !== null || child.signalCode !== null) break
      await pause(50)
    }
    throw new Error(`The gateway did not print ${pattern}:\n${output.slice(-2000)}`)
  }
  const [key = ""] = await found(/sk-[0-9A-Za-z]{46}/u, 0)
  for (let n = 0; n < 600; n += 1) {
    if ((await fetch(`${url}/readyz`).catch(() => undefined))?.ok === true) break
    await pause(100)
  }
  return {
    url,
    key,
    loop: async () => {
      const from = output.length
      child.kill("SIGUSR2")
      return found(/loop (\S+) (\S+)/u, from)
    },
    close: async () => {
      child.kill("SIGKILL")
      await rm(dataDir, { recursive: true, force: true })
    }
  }
}

/** Requests `/healthz` repeatedly from a separate, idle process. Returns a function that stops it. */
const probe = (url: string) => {
  const child = fork(fileURLToPath(import.meta.url), { env: { ...process.env, PROBED_URL: url } })
  return () =>
    new Promise<ReadonlyArray<number>>((done) => {
      child.once("message", (taken) => {
        child.disconnect()
        done(taken as ReadonlyArray<number>)
      })
      child.send("stop")
    })
}

/** The milliseconds of each response, sorted. */
const probing = async (url: string): Promise<void> => {
  const taken: Array<number> = []
  const stop = new AbortController()
  process.once("message", () => stop.abort())
  while (!stop.signal.aborted) {
    const began = performance.now()
    await fetch(`${url}/healthz`).then((response) => response.text())
    taken.push(performance.now() - began)
    await pause(5)
  }
  process.send?.(taken.toSorted((a, b) => a - b))
}

const measure = async (folder: string, wanted: string) => {
  const gateway = await start(folder)
  try {
    for (const attack of hostileBodies.filter(({ name }) => name.includes(wanted))) {
      const body = attack.body()
      await pause(500)
      await gateway.loop()
      const stop = probe(gateway.url)
      await pause(500)
      const began = performance.now()
      const answers = await runHostile(gateway.url, gateway.key, attack, body)
      const took = performance.now() - began
      await pause(200)
      const taken = await stop()
      const [, longest, memory] = await gateway.loop()
      const at = (share: number) => taken[Math.floor(share * (taken.length - 1))]?.toFixed(0)
      console.log(
        `${attack.name.padEnd(38)} ${answers.join(", ").padEnd(20)} ${took.toFixed(0)} ms, ` +
          `healthz p50 ${at(0.5)} p99 ${at(0.99)} max ${at(1)} ms, longest turn ${longest} ms of CPU, ${memory} MiB`
      )
    }
  } finally {
    await gateway.close()
  }
}

if (process.env.PROBED_URL !== undefined) {
  await probing(process.env.PROBED_URL)
} else if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await measure(resolve(process.argv[2] ?? "."), process.argv[3] ?? "")
}
