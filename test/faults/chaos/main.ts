import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { reportOf } from "./report.ts"
import { runChaos } from "./run.ts"

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    minutes: { type: "string", default: "10" },
    tasks: { type: "string", default: "1.5" },
    calls: { type: "string", default: "4" },
    standby: { type: "boolean", default: true },
    pooler: { type: "boolean" },
    media: { type: "string" },
    old: { type: "string" },
    reports: { type: "string", default: "data/chaos" }
  },
  allowNegative: true
})

const seed = Number(values.seed)
const stamp = new Date().toISOString().slice(0, 16).replaceAll(":", "")
const name = `${stamp}-seed-${seed}`
const logs = join(resolve(values.reports), "logs", name)
mkdirSync(logs, { recursive: true })
const git = (...words: ReadonlyArray<string>) => execFileSync("git", words).toString().trim()
const commit =
  git("rev-parse", "--short", "HEAD") + (git("status", "--porcelain") === "" ? "" : ", changed")

const result = await runChaos({
  seed,
  seconds: Number(values.minutes) * 60,
  faultsMin: 0,
  quietSeconds: 420,
  taskDeadline: "4 minutes",
  atOnce: 2,
  scale: 1,
  restSeconds: [1, 12],
  without: [],
  tasksPerSecond: Number(values.tasks),
  callsPerSecond: Number(values.calls),
  hasStandby: values.standby,
  // The seed decides among options that exclude each other
  hasPooler: values.pooler ?? seed % 4 > 1,
  media: (values.media ?? (seed % 2 === 0 ? "bucket" : "disk")) === "bucket" ? "bucket" : "disk",
  logs,
  ...(values.old === undefined ? {} : { oldRelease: resolve(values.old) })
})
const report = join(resolve(values.reports), `${name}.md`)
writeFileSync(report, reportOf(result, commit))
for (const { count, examples, invariant } of result.breaches) {
  console.log(`BROKEN: ${invariant}: ${count}\n  ${examples.join("\n  ")}`)
}
console.log(report)
process.exit(result.breaches.length === 0 ? 0 : 1)
