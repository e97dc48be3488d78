import { execFile } from "node:child_process"
import { chown, mkdir, rm, stat, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { Client } from "pg"
import { newServer, stopServer } from "../../support/postgresProcess.ts"
import type { NewServer } from "../../support/postgresProcess.ts"
import { pause } from "./processes.ts"

const exec = promisify(execFile)

/** What it has acknowledged survives a crash of the server; the machine does not crash. */
const settings = [
  "synchronous_commit=on",
  "autovacuum=on",
  "max_connections=120",
  "wal_keep_size=256MB"
]

interface Running {
  readonly folder: string
  readonly server: NewServer
}

/** A Postgres for this run, with a standby if failovers are requested. */
export class Postgres {
  readonly #folder: string
  #primary: Running
  #standby: Running | undefined
  #count = 1
  #client: Client | undefined
  #turn: Promise<unknown> = Promise.resolve()

  private constructor(folder: string, primary: Running) {
    this.#folder = folder
    this.#primary = primary
  }

  static async start(folder: string): Promise<Postgres> {
    const own = join(folder, "postgres-1")
    await mkdir(own, { recursive: true })
    const server = await newServer(own, settings)
    await server.start()
    return new Postgres(folder, { folder: own, server })
  }

  get url(): string {
    return this.#primary.server.url
  }

  get port(): number {
    return this.#primary.server.port
  }

  get hasStandby(): boolean {
    return this.#standby !== undefined
  }

  /** Stops the server with this signal and starts it again, at once or later. */
  async restart(signal: NodeJS.Signals, awayMillis = 0): Promise<void> {
    await stopServer(this.#primary.folder, signal)
    await pause(awayMillis)
    await this.#primary.server.start()
  }

  /** The rows of a statement, repeated while the server is away. One statement runs at a time. */
  query<A extends object>(text: string, values: ReadonlyArray<unknown> = []): Promise<Array<A>> {
    const rows = this.#turn.then(() => this.#ask<A>(text, values))
    this.#turn = rows.catch(() => {})
    return rows
  }

  async #ask<A extends object>(text: string, values: ReadonlyArray<unknown>): Promise<Array<A>> {
    for (let tries = 0; ; tries += 1) {
      try {
        const { rows } = await (await this.#connection()).query<A>(text, [...values])
        return rows
      } catch (cause) {
        this.#client = undefined
        const isOfSql = /^(?:42|22|23)/u.test(String((cause as { code?: string }).code))
        if (tries >= 120 || isOfSql) throw cause
        await pause(500)
      }
    }
  }

  async #connection(): Promise<Client> {
    if (this.#client !== undefined) return this.#client
    const client = new Client({ connectionString: this.url, connectionTimeoutMillis: 5000 })
    client.on("error", () => {
      if (this.#client === client) this.#client = undefined
    })
    await client.connect()
    this.#client = client
    return client
  }

  /** Copies the running server as a standby. From then on commits wait for the standby. */
  async addStandby(): Promise<void> {
    this.#count += 1
    const folder = join(this.#folder, `postgres-${this.#count}`)
    await mkdir(folder, { recursive: true })
    const from = this.#primary.server
    const server = await newServer(folder, settings, from)
    const client = new Client({ connectionString: this.url })
    client.on("error", () => {})
    await client.connect()
    await client.query("SELECT pg_backup_start('standby', true)")
    await exec("cp", ["-a", `${from.data}/.`, server.data])
    const { rows } = await client.query("SELECT labelfile FROM pg_backup_stop(false)")
    await rm(join(server.data, "postmaster.pid"), { force: true })
    await writeFile(join(server.data, "backup_label"), rows[0].labelfile)
    await writeFile(join(server.data, "standby.signal"), "")
    const source = `host=127.0.0.1 port=${from.port} user=postgres application_name=standby`
    const auto = join(server.data, "postgresql.auto.conf")
    await writeFile(auto, `primary_conninfo = '${source}'\n`)
    // The server does not run as root
    const { gid, uid } = await stat(server.data)
    for (const file of [auto, "backup_label", "standby.signal"]) {
      await chown(resolve(server.data, file), uid, gid)
    }
    await server.start()
    await client.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    await client.query("SELECT pg_reload_conf()")
    await client.end()
    this.#standby = { folder, server }
    await this.#untilSynchronous()
  }

  async #untilSynchronous(): Promise<void> {
    for (let tries = 0; tries < 600; tries += 1) {
      const rows = await this.query("SELECT FROM pg_stat_replication WHERE sync_state = 'sync'")
      if (rows.length > 0) return
      await pause(100)
    }
    throw new Error("the standby does not follow")
  }

  /** The primary is gone for good, and the standby takes its place. From then on commits wait for no other server. */
  async failOver(): Promise<void> {
    const standby = this.#standby
    if (standby === undefined) throw new Error("there is no standby")
    await this.#untilSynchronous()
    await stopServer(this.#primary.folder, "SIGQUIT")
    const old = this.#primary
    this.#client = undefined
    this.#primary = standby
    this.#standby = undefined
    await this.query("SELECT pg_promote(true, 60)")
    await rm(old.folder, { recursive: true, force: true })
  }

  async stop(): Promise<void> {
    await this.#client?.end().catch(() => {})
    for (const one of [this.#standby, this.#primary]) {
      if (one === undefined) continue
      await stopServer(one.folder)
      await rm(one.folder, { recursive: true, force: true })
    }
  }
}
