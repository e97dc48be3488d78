import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { projectFolder } from "../spawnService.ts"
import { blocksOf, isDrawing, labelOf } from "./Markdown.ts"
import type { Block } from "./Markdown.ts"

/** What the test does with a block. */
export type Step =
  | { readonly kind: "excerpt" | "file" | "run" | "skip" | "start"; readonly block: Block }
  | { readonly kind: "answer"; readonly block: Block; readonly to: Step }

const answers = new Set(["json", "text"])
const files = new Set(["json", "js", "python", "ts"])

/** Whether a block starts the gateway. The test starts it itself, once for all pages. */
const isStart = ({ language, text }: Block) =>
  language === "sh" && /\bnpm start$/u.test(text.trim())

/**
 * The blocks of a page in order. `sh` is run; a block with a file name is written to that file; one with a path is an
 * excerpt of that project file; `json` or `text` after a run is its output. Every other block must be in `notRun`.
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

/** The gateway as a page addresses it, and the values of secrets that the page does not show. */
export interface Gateway {
  readonly port: number
  readonly key: string
  readonly adminToken: string
}

/** Runs a page in a separate shell that keeps variables and the folder from block to block. It starts in the clone. */
export class SamplePage {
  readonly folder: string
  readonly clone: string
  readonly steps: ReadonlyArray<Step>
  readonly #receiverPort: number
  #shell: ChildProcess | undefined

  constructor(folder: string, steps: ReadonlyArray<Step>, receiverPort: number) {
    this.folder = folder
    this.steps = steps
    this.#receiverPort = receiverPort
    this.clone = join(folder, "generation-gateway")
    mkdirSync(this.clone, { recursive: true })
    modulesOf(folder)
    if (steps.some(({ block }) => block.text.includes("npm run"))) copyProject(this.clone)
  }

  /** Runs the blocks before the one that starts the gateway. */
  async prepare(): Promise<void> {
    const first = this.steps.findIndex(({ kind }) => kind === "start")
    if (first > 0) await this.#run(this.steps.slice(0, first), "before", undefined)
  }

  /** Runs the other blocks. `output` returns the text that each one printed. */
  async run(gateway: Gateway): Promise<void> {
    const first = this.steps.findIndex(({ kind }) => kind === "start")
    await this.#run(this.steps.slice(first + 1), "after", gateway)
  }

  /** The output of a block, with the port numbers of the document. */
  output(step: Step): string {
    const path = join(this.folder, `.out-${step.block.line}`)
    const text = existsSync(path) ? readFileSync(path, "utf8") : ""
    return text.replaceAll(`:${this.#receiverPort}`, ":3443")
  }

  async #run(steps: ReadonlyArray<Step>, part: string, gateway: Gateway | undefined) {
    const script = steps.map((step) => this.#command(step, gateway)).join("\n")
    const path = join(this.folder, `.${part}.sh`)
    const exit = `pwd > ${this.#place}; kill $(jobs -p) 2>/dev/null`
    writeFileSync(path, `set -u\ntrap '${exit}' EXIT\n${script}\n`)
    const child = spawn("bash", [path], {
      cwd: existsSync(this.#place) ? readFileSync(this.#place, "utf8").trim() : this.clone,
      detached: true,
      env: {
        HOME: this.folder,
        PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
        NODE_NO_WARNINGS: "1",
        ...(gateway === undefined ? {} : { GATEWAY_API_KEY: gateway.key })
      },
      stdio: ["ignore", "ignore", "pipe"]
    })
    this.#shell = child
    let fault = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => (fault += text))
    const hung = setTimeout(() => {
      fault += `it waits forever:\n${this.#last(steps)}`
      this.#kill()
    }, 60_000)
    const code = await new Promise((resolve) => child.once("exit", resolve))
    clearTimeout(hung)
    if (code !== 0) throw new Error(fault)
  }

  /** The block that started last, with its output. */
  #last(steps: ReadonlyArray<Step>): string {
    const lines = steps.map(({ block }) => block.line)
    const line = lines.findLast((it) => existsSync(join(this.folder, `.out-${it}`)))
    const parts = ["out", "err"].map((it) => join(this.folder, `.${it}-${line}`))
    return [`line ${line}`, ...parts.map((path) => readFileSync(path, "utf8"))].join("\n")
  }

  /** Ends processes that the page left running. */
  close(): void {
    this.#kill()
    rmSync(this.folder, { recursive: true, force: true })
  }

  #kill(): void {
    try {
      if (this.#shell?.pid !== undefined) process.kill(-this.#shell.pid, "SIGKILL")
    } catch {
      // No process was left running
    }
  }

  /** The file that stores in which folder the last part of the page ended. */
  get #place(): string {
    return join(this.folder, ".place")
  }

  #command({ kind, block }: Step, gateway: Gateway | undefined): string {
    const text = this.#filled(block.text, gateway)
    const { line, name = "" } = block
    if (kind === "file") {
      const source = join(this.folder, `.block-${line}`)
      writeFileSync(source, `${text}\n`)
      return `cp ${source} ${name}`
    }
    if (kind !== "run") return ""
    const [out, err] = ["out", "err"].map((it) => join(this.folder, `.${it}-${line}`))
    const report = `{ echo "line ${line}: status $?" >&2; cat ${out} ${err} >&2; exit 1; }`
    return `${settled(text, gateway)}{\n${text}\n} > ${out} 2> ${err} || ${report}`
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

/**
 * Waits until the calls of earlier blocks are settled, before a block that reads receipts or usage. A call is settled
 * shortly after its response, and the shell may be faster.
 */
const settled = (text: string, gateway: Gateway | undefined): string => {
  const [authorization] = /Authorization: Bearer [^"]+/u.exec(text) ?? []
  if (gateway === undefined || authorization === undefined) return ""
  if (!/\/manage\/v1\/(?:calls|usage)\b/u.test(text)) return ""
  const [user = ""] = /user_id=\$\w+/u.exec(text) ?? []
  const wallet = `http://localhost:${gateway.port}/manage/v1/wallet?${user}`
  const held = `$(curl -s "${wallet}" -H "${authorization}" | jq -r .held_balance)`
  return `until [ "${held}" = 0.00 ]; do sleep 0.1; done\n`
}

/**
 * Copies the files that a package build needs, because a build must not change this project while other tests read it.
 */
const copyProject = (clone: string): void => {
  for (const name of [
    "package.json",
    "tsconfig.json",
    "tsconfig.build.json",
    "tsconfig.packages.json"
  ]) {
    copyFileSync(join(projectFolder, name), join(clone, name))
  }
  for (const name of ["src/cli/package", "src/client", "src/webhooks"]) {
    cpSync(join(projectFolder, name), join(clone, name), { recursive: true })
  }
  symlinkSync(join(projectFolder, "node_modules"), join(clone, "node_modules"))
}

/** Links the modules that samples import: this project under its name, from its sources, and the vendors' clients. */
const modulesOf = (folder: string): void => {
  const modules = join(folder, "node_modules")
  const own = join(modules, "generation-gateway")
  mkdirSync(own, { recursive: true })
  symlinkSync(join(projectFolder, "node_modules/openai"), join(modules, "openai"))
  symlinkSync(join(projectFolder, "src"), join(own, "src"))
  writeFileSync(join(own, "package.json"), JSON.stringify({ type: "module" }))
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }))
}
