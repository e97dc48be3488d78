import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { existsSync } from "node:fs"
import { chmod, mkdir, writeFile } from "node:fs/promises"
import { connect } from "node:net"
import { join } from "node:path"
import { freePort, killAtExit } from "../../support/spawnService.ts"
import { pause } from "./processes.ts"

const places = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/opt/homebrew/bin/pgbouncer"]

/** Settings that the service makes for each connection and the pooler does not pass on. */
export const roleSettings = [
  "enable_seqscan = off",
  "jit = off",
  "idle_in_transaction_session_timeout = '10s'",
  "statement_timeout = '30s'"
]

type PoolMode = "session" | "transaction"

/** The program named by `TEST_PGBOUNCER`, or the installed one. Transaction mode needs 1.21 or newer. */
export class PgBouncer {
  readonly port: number
  readonly #program: string
  readonly #folder: string
  readonly #mode: PoolMode
  #target: number
  #child: ChildProcess | undefined

  private constructor(
    program: string,
    folder: string,
    mode: PoolMode,
    port: number,
    target: number
  ) {
    this.#program = program
    this.#mode = mode
    this.#folder = folder
    this.port = port
    this.#target = target
  }

  /** `undefined` if there is no such program. */
  static async start(
    folder: string,
    target: number,
    mode: PoolMode = "session"
  ): Promise<PgBouncer | undefined> {
    const program = process.env.TEST_PGBOUNCER ?? places.find((place) => existsSync(place))
    if (program === undefined) return undefined
    await mkdir(folder)
    await chmod(folder, 0o777)
    const pooler = new PgBouncer(program, folder, mode, await freePort(), target)
    await pooler.#start()
    return pooler
  }

  async #start(): Promise<void> {
    const file = join(this.#folder, "pgbouncer.ini")
    await writeFile(
      file,
      `[databases]
postgres = host=127.0.0.1 port=${this.#target} dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${this.port}
auth_type = any
pool_mode = ${this.#mode}
${this.#mode === "transaction" ? "max_prepared_statements = 200" : ""}
unix_socket_dir =
max_client_conn = 500
default_pool_size = 60
ignore_startup_parameters = enable_seqscan,jit,idle_in_transaction_session_timeout,statement_timeout,extra_float_digits
`
    )
    // PgBouncer does not run as root
    const user = process.getuid?.() === 0 ? ["-u", "postgres"] : []
    const child = spawn(this.#program, ["-q", ...user, file], { stdio: "ignore" })
    killAtExit(child)
    this.#child = child
    for (let tries = 0; tries < 200; tries += 1) {
      if (await isOpen(this.port)) return
      await pause(50)
    }
    throw new Error("PgBouncer does not listen")
  }

  async stop(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once("exit", resolve))
    // From 1.23 on it waits for its clients after SIGTERM, and the service keeps its connections
    child.kill("SIGQUIT")
    await ended
  }

  /** Closes every connection; `target` is the port of the Postgres behind it from then on. */
  async restart(awayMillis: number, target = this.#target): Promise<void> {
    await this.stop()
    this.#target = target
    await pause(awayMillis)
    await this.#start()
  }
}

const isOpen = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("connect", () => {
      socket.destroy()
      resolve(true)
    })
    socket.once("error", () => resolve(false))
  })
