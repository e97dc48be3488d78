import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { createWriteStream, readFileSync } from "node:fs"
import type { WriteStream } from "node:fs"
import { join } from "node:path"
import { compileCache, compiled, shortLived } from "../../support/compiled.ts"
import { freePort, killAtExit, projectFolder } from "../../support/spawnService.ts"

export const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** The interval in which a fault hit a process. Its calls of that time may be free. */
export interface Hit {
  readonly kind: string
  readonly from: number
  to: number
}

export interface ServiceOptions {
  readonly name: string
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
  /** The checkout from which it runs. */
  readonly root?: string
}

/** A process of the service, whose output goes to a file. */
export class ServiceProcess {
  readonly name: string
  readonly url: string
  /** Environment variables for the next start. */
  readonly env: Record<string, string>
  root: string
  readonly hits: Array<Hit> = []
  starts = 0
  /** Exits that were not requested. */
  readonly unexpected: Array<string> = []
  /** The CPU seconds of all earlier starts. */
  #cpuBefore = 0
  #cpuNow = 0
  #child: ChildProcess | undefined
  #ended: Promise<unknown> = Promise.resolve()
  #isEnding = false
  #wasReady = false
  readonly #log: WriteStream

  private constructor(port: number, options: ServiceOptions) {
    this.name = options.name
    this.url = `http://127.0.0.1:${port}`
    this.root = options.root ?? projectFolder
    this.env = { ...options.env, PORT: String(port), BASE_URL: this.url }
    this.#log = createWriteStream(join(options.folder, `${options.name}.log`), { flags: "a" })
  }

  static async make(options: ServiceOptions): Promise<ServiceProcess> {
    return new ServiceProcess(await freePort(), options)
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && !this.#child.signalCode
  }

  /** Starts it and waits until it is ready. A start that fails because the store is away is repeated. */
  async start(millis = 180_000): Promise<number> {
    const began = performance.now()
    while (performance.now() - began < millis) {
      if (!this.isRunning) this.#spawn(await this.#program())
      const answer = await fetch(`${this.url}/readyz`, {
        signal: AbortSignal.timeout(5000)
      }).catch(() => undefined)
      await answer?.arrayBuffer().catch(() => undefined)
      if (answer?.status === 200) {
        this.#wasReady = true
        return performance.now() - began
      }
      await pause(100)
    }
    throw new Error(`${this.name} did not get ready: see its log`)
  }

  /** The previous release is another folder, whose program runs unchanged. */
  #program(): Promise<string> | string {
    return this.root === projectFolder ? compiled() : "src/main.ts"
  }

  #spawn(program: string): void {
    this.starts += 1
    this.#cpuBefore += this.#cpuNow
    this.#cpuNow = 0
    // Signals of tests move its clock
    const clock = join(projectFolder, "test/support/clockJump.ts")
    const child = spawn(process.execPath, [...shortLived, "--import", clock, program], {
      cwd: this.root,
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...compileCache, ...this.env }
    })
    killAtExit(child)
    this.#isEnding = false
    this.#wasReady = false
    this.#child = child
    const note = (chunk: Buffer) => this.#log.write(chunk)
    child.stdout.on("data", note)
    child.stderr.on("data", note)
    this.#ended = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        this.#log.write(`--- ended: ${signal ?? code}\n`)
        if (!this.#isEnding && this.#wasReady) {
          this.unexpected.push(`${this.name} ended by itself: ${signal ?? code}`)
        }
        resolve(undefined)
      })
    })
  }

  /** Sends the signal, waits for the exit, and returns how many milliseconds it took. */
  async end(signal: NodeJS.Signals): Promise<number> {
    const began = performance.now()
    this.sample()
    this.#isEnding = true
    if (this.isRunning) this.#child?.kill(signal)
    await this.#ended
    return performance.now() - began
  }

  signal(signal: NodeJS.Signals): void {
    if (this.isRunning) this.#child?.kill(signal)
  }

  /** Records a fault of this process until `end` is called. */
  hit(kind: string): { readonly end: () => void } {
    const hit: Hit = { kind, from: Date.now(), to: Infinity }
    this.hits.push(hit)
    return {
      end: () => {
        hit.to = Date.now()
      }
    }
  }

  /** Reads its CPU time. */
  sample(): void {
    try {
      const fields = readFileSync(`/proc/${this.pid}/stat`, "utf8").split(") ")[1]!.split(" ")
      this.#cpuNow = (Number(fields[11]) + Number(fields[12])) / 100
    } catch {
      // It has exited, or this is not Linux
    }
  }

  get cpuSeconds(): number {
    return this.#cpuBefore + this.#cpuNow
  }
}
