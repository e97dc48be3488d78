import { connect, createServer } from "node:net"
import type { Socket } from "node:net"
import { listen } from "./localServer.ts"

export interface PoolerOptions {
  /**
   * `session`: a client keeps its server connection. `transaction`: it keeps it for one transaction, as with PgBouncer
   * 1.18.
   */
  readonly mode: "session" | "transaction"
  /** What the pooler does with the settings in a startup packet. */
  readonly settings: "passed" | "ignored" | "refused"
  /** The maximum number of server connections. Further clients wait for one, as with PgBouncer. */
  readonly serversMax?: number
  /** How a wait for a server connection ends. */
  readonly exhausted?:
    | "waits"
    | "waits after its login"
    | "query_wait_timeout"
    | "no more connections allowed"
}

const settings = [
  "enable_seqscan",
  "jit",
  "idle_in_transaction_session_timeout",
  "statement_timeout"
]

/** Splits a stream into complete messages. A startup packet has no type byte. */
class Frames {
  #rest = Buffer.alloc(0)
  hasStarted: boolean

  constructor(hasStarted: boolean) {
    this.hasStarted = hasStarted
  }

  take(chunk: Buffer): ReadonlyArray<Buffer> {
    this.#rest = Buffer.concat([this.#rest, chunk])
    const frames: Array<Buffer> = []
    for (;;) {
      const head = this.hasStarted ? 1 : 0
      if (this.#rest.length < head + 4) return frames
      const size = head + this.#rest.readInt32BE(head)
      if (this.#rest.length < size) return frames
      const frame = this.#rest.subarray(0, size)
      this.#rest = this.#rest.subarray(size)
      if (!this.hasStarted) this.hasStarted = frame.readInt32BE(4) === 196_608
      frames.push(frame)
    }
  }
}

const errorOf = (code: string, text: string) => {
  const body = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${text}\0\0`)
  const head = Buffer.alloc(5)
  head.write("E")
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const without = (startup: Buffer): Buffer => {
  const words = startup.subarray(8).toString().split("\0")
  const kept: Array<string> = []
  for (let n = 0; n + 1 < words.length && words[n] !== ""; n += 2) {
    if (!settings.includes(words[n]!)) kept.push(words[n]!, words[n + 1]!)
  }
  const body = Buffer.from(`${kept.join("\0")}\0\0`)
  const head = Buffer.alloc(8)
  head.writeInt32BE(body.length + 8, 0)
  head.writeInt32BE(196_608, 4)
  return Buffer.concat([head, body])
}

/** A connection to Postgres, with the messages that the server sent at login. */
interface Server {
  readonly socket: Socket
  readonly login: Buffer
  receive: (frame: Buffer) => void
}

const login = (port: number, startup: Buffer) =>
  new Promise<Server>((resolve) => {
    const socket = connect(port, "127.0.0.1")
    const frames = new Frames(true)
    const greeting: Array<Buffer> = []
    const server: Server = {
      socket,
      login: Buffer.alloc(0),
      receive: (frame) => greeting.push(frame)
    }
    socket.on("error", () => {})
    socket.on("data", (chunk) => {
      for (const frame of frames.take(chunk)) {
        server.receive(frame)
        if (server.login.length === 0 && frame[0] === 0x5a) {
          const ready = { ...server, login: Buffer.concat(greeting) }
          server.receive = (later) => ready.receive(later)
          Object.assign(server, { login: ready.login })
          resolve(ready)
        }
      }
    })
    socket.write(startup)
  })

/** A connection pooler in front of a Postgres on 127.0.0.1 that trusts every client. */
export const startPooler = async (targetPort: number, options: PoolerOptions) => {
  const sockets = new Set<Socket>()
  const idle: Array<Server> = []
  const state = { isStarting: false, clients: 0 }
  /** The messages of one login, which PgBouncer stores and sends to clients without a server connection. */
  let greeting: Buffer = Buffer.alloc(0)

  const serve = async (
    client: Socket,
    startup: Buffer,
    more: (take: (frame: Buffer) => void) => void
  ) => {
    let server: Server | undefined
    let cycles = 0
    const acquire = async () => {
      const taken = idle.pop() ?? (await login(targetPort, startup))
      sockets.add(taken.socket)
      taken.receive = (frame) => {
        client.write(frame)
        if (frame[0] !== 0x5a) return
        cycles -= 1
        // Ready for a query, and not in a transaction
        if (options.mode === "session" || cycles > 0 || frame[5] !== 0x49) return
        server = undefined
        idle.push(taken)
      }
      return taken
    }
    let pending: Promise<void> = Promise.resolve()
    const first = await acquire()
    greeting = first.login
    client.write(first.login)
    if (options.mode === "session") server = first
    else idle.push(first)
    client.on("close", () => server?.socket.destroy())
    more((frame) => {
      pending = pending.then(async () => {
        if (frame[0] === 0x58) return void client.destroy()
        server ??= await acquire()
        // Sync, or a simple query
        if (frame[0] === 0x53 || frame[0] === 0x51) cycles += 1
        server.socket.write(frame)
      })
    })
  }

  let servers = 0
  const listener = createServer((client) => {
    sockets.add(client)
    state.clients += 1
    client.on("error", () => {})
    client.on("close", () => sockets.delete(client))
    if (state.isStarting)
      return void client.end(errorOf("57P03", "the database system is starting up"))
    const frames = new Frames(false)
    const early: Array<Buffer> = []
    let take = (frame: Buffer): void => {
      early.push(frame)
    }
    let isServed = false
    client.on("data", (chunk) => {
      for (const frame of frames.take(chunk)) {
        if (isServed) {
          take(frame)
          continue
        }
        // A request for TLS
        if (!frames.hasStarted) {
          client.write("N")
          continue
        }
        isServed = true
        servers += 1
        if (servers > (options.serversMax ?? Infinity)) {
          const { exhausted = "waits" } = options
          if (exhausted === "waits after its login") return void client.write(greeting)
          return void (exhausted === "waits" || client.end(errorOf("08P01", exhausted)))
        }
        const unsupported = settings.find((name) => frame.includes(`${name}\0`))
        if (options.settings === "refused" && unsupported !== undefined) {
          client.end(errorOf("08P01", `unsupported startup parameter: ${unsupported}`))
          return
        }
        const startup = options.settings === "passed" ? frame : without(frame)
        void serve(client, startup, (handle) => {
          take = handle
          early.forEach(handle)
        })
      }
    })
  })
  return {
    port: await listen(listener),
    state,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => listener.close(resolve))
    }
  }
}
