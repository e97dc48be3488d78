import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { projectFolder } from "../spawnService.ts"
import { blocksOf, isDrawing, labelOf } from "./Markdown.ts"
import type { Block } from "./Markdown.ts"

/** What a block of a page is for the test. */
export type Step =
  | { readonly kind: "excerpt" | "file" | "run" | "skip" | "start"; readonly block: Block }
  | { readonly kind: "answer"; readonly block: Block; readonly to: Step }

const answers = new Set(["json", "text"])
const files = new Set(["json", "js", "python", "ts"])

/** Whether a block starts the gateway: the test does that itself, once for all pages. */
const isStart = ({ language, text }: Block) =>
  language === "sh" && /\bnpm start$/u.test(text.trim())

/**
 * The blocks of a page in order: `sh` is run, a block with the name of a file is written to it, one with a
 * path is a part of that file of the project, and `json` or `text` behind a run is what it prints. Every other
 * block has to be in `notRun`.
 */
export const stepsOf = (markdown: string, notRun: Readonly<Record<string, string>>) => {
  const steps: Array<Step> = []
  for (const block of blocksOf(markdown).filter((it) => !isDrawing(it))) {
    const before = steps.at(-1)
    const hasOutput = before?.kind === "run" || before?.kind === "start"
    if (labelOf(block) in notRun) steps.push({ kind: "skip", block })
    else if (isStart(block)) steps.push({ kind: "start", block })
    else if (block.language === "sh") steps.push({ kind: "run", block })
    else if (block.name?.includes("/") === true) steps.push({ kind: "excerpt", block })
    else if (block.name !== undefined && files.has(block.language))
      steps.push({ kind: "file", block })
    else if (answers.has(block.language) && hasOutput) {
      steps.push({ kind: "answer", block, to: before })
    } else {
      throw new Error(
        `line ${block.line}: neither run, nor an answer, nor listed: ${labelOf(block)}`
      )
    }
  }
  return steps
}

/** The variables with which the blocks of a page start the gateway. */
export const startVariables = (steps: ReadonlyArray<Step>, folder: string) =>
  Object.fromEntries(
    steps
      .filter(({ kind }) => kind === "start")
      .flatMap(({ block }) =>
        Array.from(
          block.text.matchAll(/^\s*([A-Z_]+)=(\S+)/gmu),
          ([, name = "", value = ""]): readonly [string, string] => [
            name,
            value.replace("$PWD", folder)
          ]
        )
      )
  )

/** The gateway as a page addresses it, and what stands for the secrets that it does not show. */
export interface Gateway {
  readonly port: number
  readonly key: string
  readonly adminToken: string
}

/** A page in a shell of its own, which keeps variables from block to block. */
export class SamplePage {
  readonly folder: string
  readonly steps: ReadonlyArray<Step>
  readonly #receiverPort: number
  #shell: ChildProcess | undefined

  constructor(folder: string, steps: ReadonlyArray<Step>, receiverPort: number) {
    this.folder = folder
    this.steps = steps
    this.#receiverPort = receiverPort
    mkdirSync(folder, { recursive: true })
    modulesOf(folder)
  }

  /** Runs the blocks before the one that starts the gateway. */
  async prepare(): Promise<void> {
    const first = this.steps.findIndex(({ kind }) => kind === "start")
    if (first > 0) await this.#run(this.steps.slice(0, first), "before", undefined)
  }

  /** Runs the other blocks; `output` has what each has printed. */
  async run(gateway: Gateway): Promise<void> {
    const first = this.steps.findIndex(({ kind }) => kind === "start")
    await this.#run(this.steps.slice(first + 1), "after", gateway)
  }

  /** What a block has printed, with the ports of the document. */
  output(step: Step): string {
    const path = join(this.folder, `.out-${step.block.line}`)
    const text = existsSync(path) ? readFileSync(path, "utf8") : ""
    return text.replaceAll(`:${this.#receiverPort}`, ":3443")
  }

  async #run(steps: ReadonlyArray<Step>, part: string, gateway: Gateway | undefined) {
    const script = steps.map((step) => this.#command(step, gateway)).join("\n")
    const path = join(this.folder, `.${part}.sh`)
    writeFileSync(path, `set -u\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n${script}\n`)
    const child = spawn("bash", [path], {
      cwd: this.folder,
      detached: true,
      env: {
        HOME: this.folder,
        PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
        NODE_NO_WARNINGS: "1",
        ...(gateway === undefined ? {} : { API_KEY: gateway.key })
      },
      stdio: ["ignore", "ignore", "pipe"]
    })
    this.#shell = child
    let fault = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => (fault += text))
    const hung = setTimeout(() => {
      fault += `it waits for ever:\n${this.#last(steps)}`
      this.#kill()
    }, 60_000)
    const code = await new Promise((resolve) => child.once("exit", resolve))
    clearTimeout(hung)
    if (code !== 0) throw new Error(fault)
  }

  /** The block that was begun last, with all that it printed. */
  #last(steps: ReadonlyArray<Step>): string {
    const lines = steps.map(({ block }) => block.line)
    const line = lines.findLast((it) => existsSync(join(this.folder, `.out-${it}`)))
    const parts = ["out", "err"].map((it) => join(this.folder, `.${it}-${line}`))
    return [`line ${line}`, ...parts.map((path) => readFileSync(path, "utf8"))].join("\n")
  }

  /** Ends what the page has left behind. */
  close(): void {
    this.#kill()
    rmSync(this.folder, { recursive: true, force: true })
  }

  #kill(): void {
    try {
      if (this.#shell?.pid !== undefined) process.kill(-this.#shell.pid, "SIGKILL")
    } catch {
      // Nothing was left
    }
  }

  #command({ kind, block }: Step, gateway: Gateway | undefined): string {
    const text = this.#filled(block.text, gateway)
    const { line, name = "" } = block
    if (kind === "file") {
      const source = `.block-${line}`
      writeFileSync(join(this.folder, source), `${text}\n`)
      return `cp ${source} ${name}`
    }
    if (kind !== "run") return ""
    const report = `{ echo "line ${line}: status $?" >&2; cat .out-${line} .err-${line} >&2; exit 1; }`
    const before = gateway !== undefined && showsCalls.test(text) ? untilSettled(gateway) : ""
    return `${before}{\n${text}\n} > .out-${line} 2> .err-${line} || ${report}`
  }

  #filled(text: string, gateway: Gateway | undefined): string {
    const own = text.replaceAll(/\b3443\b/gu, String(this.#receiverPort))
    if (gateway === undefined) return own
    return own
      .replaceAll("localhost:8080", `localhost:${gateway.port}`)
      .replaceAll("sk-…", gateway.key)
      .replaceAll("op_…", gateway.adminToken)
  }
}

const showsCalls = /\/manage\/v1\/(calls|usage)\b/u

/** A call is settled after its response, and the test is quicker than a reader: waits until nobody has a hold. */
const untilSettled = ({ adminToken, port }: Gateway): string => {
  const get = (path: string) =>
    `curl -s localhost:${port}/manage/v1/users${path} -H "Authorization: Bearer ${adminToken}"`
  const held = `for id in $(${get("")} | jq -r '.data[].id'); do ${get("/$id/wallet")}; done`
  return `until [ "$(${held} | jq -r .held_balance | sort -u)" = 0.00 ]; do sleep 0.1; done\n`
}

/** What the samples import: this project under its name, from its sources, and the clients of vendors. */
const modulesOf = (folder: string): void => {
  const modules = join(folder, "node_modules")
  const own = join(modules, "generation-gateway")
  mkdirSync(own, { recursive: true })
  symlinkSync(join(projectFolder, "node_modules/openai"), join(modules, "openai"))
  symlinkSync(join(projectFolder, "src"), join(own, "src"))
  const exports = { "./webhooks": "./src/webhooks/verifyWebhook.ts" }
  writeFileSync(join(own, "package.json"), JSON.stringify({ type: "module", exports }))
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }))
}
