import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { compileCache, compiled, shortLived } from "./compiled.ts"
import { adminToken, masterKey, readResult } from "./gateway.ts"
import type { HttpResult } from "./gateway.ts"
import { ownClock } from "./ownClock.ts"
import { freePort, killAtExit } from "./spawnService.ts"
import { prepareDataDir } from "./stores.ts"
import { pause } from "./until.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))

export interface ProcessOptions {
  /** The URL of a real Postgres. Default: the embedded store in a temporary folder. */
  readonly databaseUrl?: string
  /** The folder of the embedded store and the artifacts. Default: a temporary folder. */
  readonly dataDir?: string
  /** The program, from the root of the project. Default: `src/main.ts`. */
  readonly main?: string
  readonly env?: Readonly<Record<string, string>>
  /**
   * The command that runs the program. Default: this Node with the flags of a short-lived process, and the program
   * bundled into one file.
   */
  readonly command?: ReadonlyArray<string>
}

/** The service in its own process, which can be killed and restarted. */
export class GatewayProcess {
  readonly url: string
  readonly dataDir: string
  readonly adminToken = adminToken
  /** The output of the process over all its starts. */
  output = ""
  /** Environment variables of the next start. */
  readonly env: Record<string, string>
  #key: string | undefined
  #child: ChildProcess | undefined
  #ended: Promise<number | NodeJS.Signals> = Promise.resolve(0)
  /** Called when the process writes output. */
  #noted = () => {}
  readonly #options: ProcessOptions
  readonly #ownsFolder: boolean

  private constructor(port: number, dataDir: string, options: ProcessOptions) {
    this.url = `http://127.0.0.1:${port}`
    this.dataDir = dataDir
    this.#options = options
    this.env = { ...options.env }
    this.#ownsFolder = options.dataDir === undefined
  }

  /** Starts the service and waits until it is ready, with a user, 1000 credits and a key. */
  static async start(options: ProcessOptions = {}): Promise<GatewayProcess> {
    const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), "gateway-process-")))
    const gateway = new GatewayProcess(await freePort(), dataDir, options)
    const isEmbedded = options.databaseUrl === undefined
    const isNew = isEmbedded && !existsSync(join(dataDir, "postgres"))
    try {
      if (isNew) await prepareDataDir(dataDir)
      await gateway.start()
      if (isNew) await gateway.#welcomed()
    } catch (cause) {
      await gateway.close()
      throw cause
    }
    return gateway
  }

  /** Restarts the process on the same store and port. Returns the milliseconds until it was ready. */
  async start(): Promise<number> {
    const { command = [process.execPath, ...shortLived], databaseUrl } = this.#options
    const isOurs = this.#options.command === undefined
    const main = this.#options.main ?? "src/main.ts"
    const [program = process.execPath, ...before] = command
    const began = performance.now()
    const child = spawn(program, [...before, isOurs ? await compiled(main) : main], {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        TMPDIR: process.env.TMPDIR,
        MANAGE_RATE_LIMIT_PER_MINUTE: "0",
        ...compileCache,
        HOST: "127.0.0.1",
        PORT: new URL(this.url).port,
        DATA_DIR: this.dataDir,
        BASE_URL: this.url,
        ADMIN_TOKEN: adminToken,
        MASTER_KEY: masterKey,
        EGRESS_ALLOW: "127.0.0.1,::1,localhost",
        SIMULATOR_DELAY: "100 millis to 500 millis",
        LOG_FORMAT: "json",
        // No load balancer needs time to notice the stop
        SHUTDOWN_DELAY: "0 seconds",
        ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
        ...this.env
      }
    })
    this.#child = child
    killAtExit(child)
    const note = (chunk: Buffer) => {
      this.output += chunk.toString()
      this.#noted()
      // Vitest shows it with a failing test
      console.log(chunk.toString())
    }
    child.stdout.on("data", note)
    child.stderr.on("data", note)
    this.#ended = new Promise((resolve) =>
      child.once("exit", (code, signal) => resolve(signal ?? code ?? 0))
    )
    await this.#ready(child)
    return performance.now() - began
  }

  /** Waits for the end of the first start: its key is in the output and its marker has been removed. */
  async #welcomed(): Promise<void> {
    const marker = join(this.dataDir, "first-start")
    for (let round = 0; round < 1000; round += 1) {
      if (/sk-[0-9A-Za-z]{46}/u.test(this.output) && !existsSync(marker)) return
      await pause(20)
    }
    throw new Error(`the first start did not complete:\n${this.output}`)
  }

  /**
   * Waits until the process is ready. The first request is sent only after the log line about listening, because a
   * refused connection costs as much as a response.
   */
  async #ready(child: ChildProcess): Promise<void> {
    const until = performance.now() + 120_000
    const before = this.output.length
    while (performance.now() < until) {
      if (child.exitCode !== null || child.signalCode !== null) break
      const listens = this.output.includes("Listening", before)
      await this.#outputOr(listens ? 20 : 200)
      const answer = await fetch(`${this.url}/readyz`).catch(() => undefined)
      await answer?.arrayBuffer()
      if (answer?.status === 200) return
    }
    throw new Error(`the service did not become ready:\n${this.output}`)
  }

  #outputOr(millis: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, millis)
      this.#noted = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  get isRunning(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** The exit code, or the signal that ended the process. */
  get ended(): Promise<number | NodeJS.Signals> {
    return this.#ended
  }

  /** Sends the signal and waits for the end. Returns how many milliseconds that took, by the process's own clock. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<number> {
    const now = ownClock(this.pid)
    const began = now()
    const reads = setInterval(now, 10)
    if (this.isRunning) this.#child?.kill(signal)
    await this.#ended
    clearInterval(reads)
    return now() - began
  }

  async restart(signal: NodeJS.Signals = "SIGKILL"): Promise<number> {
    await this.kill(signal)
    return this.start()
  }

  /** Stops the process and removes its temporary folder. */
  async close(): Promise<void> {
    await this.kill()
    if (this.#ownsFolder) await rm(this.dataDir, { recursive: true, force: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** An API key with both scopes, of a user with 1000 credits. With an embedded store it is the store's first key. */
  async key(): Promise<string> {
    if (this.#key !== undefined) return this.#key
    const printed = /sk-[0-9A-Za-z]{46}/u.exec(this.output)?.[0]
    this.#key = printed ?? (await this.makeUser()).key
    return this.#key
  }

  /** Uses the key of another process on the same database. */
  useKey(key: string): this {
    this.#key = key
    return this
  }

  /** Creates a user with a key of both scopes. */
  async makeUser(credits = "1000.00"): Promise<{ readonly id: string; readonly key: string }> {
    const email = `user-${Math.random().toString(36).slice(2)}@example.com`
    const user = await this.manage("POST", "/users", { email })
    const id: string = user.json.id
    await this.manage("POST", `/users/${id}/top-ups`, { amount: credits })
    const scopes = ["inference", "manage"]
    const key = await this.manage("POST", `/users/${id}/api-keys`, { name: "test", scopes })
    return { id, key: key.json.key }
  }

  /** Calls the service with the key of `key()`. `body` is sent as JSON. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {}
  ): Promise<HttpResult> {
    return this.#send(await this.key(), method, path, body, headers)
  }

  /** Calls the management API with the operator's token. */
  manage(method: string, path: string, body?: unknown): Promise<HttpResult> {
    return this.#send(adminToken, method, `/manage/v1${path}`, body, {})
  }

  async #send(
    token: string,
    method: string,
    path: string,
    body: unknown,
    headers: Readonly<Record<string, string>>
  ): Promise<HttpResult> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    return readResult(response)
  }
}
