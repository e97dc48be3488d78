import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/**
 * Prints the rows of the table in docs/reliability.md for the reports in a folder: `node test/faults/chaos/fold.ts
 * data/chaos`
 */
const [folder = "data/chaos"] = process.argv.slice(2)

const field = (report: string, name: string): string =>
  report
    .split("\n")
    .find((line) => line.startsWith(`| ${name}`))
    ?.split("|")[2]
    ?.trim() ?? "-"

const first = (text: string): number => Number(/\d+/u.exec(text)?.[0] ?? 0)

const totals = { minutes: 0, tasks: 0, calls: 0, deliveries: 0, faults: 0, starts: 0 }
for (const name of readdirSync(folder).sort()) {
  if (!/^.*-seed-\d+\.md$/u.test(name)) continue
  const report = readFileSync(join(folder, name), "utf8")
  const seed = /seed (\d+),/u.exec(report)?.[1] ?? "-"
  const commit = /^Commit ([^.]*)\./mu.exec(report)?.[1] ?? "-"
  const minutes = Math.round(first(field(report, "seconds of faults")) / 60)
  const faults = report.slice(report.indexOf("## In order")).split("\n- ").length - 1
  const tasks = first(field(report, "tasks"))
  const calls = first(field(report, "whole answers to calls"))
  const deliveries = first(field(report, "deliveries"))
  const starts = first(field(report, "starts of processes"))
  const takeovers = /median ([\d.]+ s|-), longest ([\d.]+ s|-)/u.exec(report)
  const broken = [...report.matchAll(/^- \*\*(.*)\*\*: (\d+), first/gmu)]
  const what = broken.map(([, invariant, count]) => `${invariant} (${count})`).join("; ")
  const load = field(report, "load of the machine")
  const times = `${takeovers?.[1] ?? "-"}, ${takeovers?.[2] ?? "-"}`
  const cells = [seed, commit, minutes, faults, starts, tasks, calls, deliveries, times, load]
  console.log(`| ${cells.join(" | ")} | ${what === "" ? "none" : what} |`)
  totals.minutes += minutes
  totals.faults += faults
  totals.starts += starts
  totals.tasks += tasks
  totals.calls += calls
  totals.deliveries += deliveries
}
const { calls, deliveries, faults, minutes, starts, tasks } = totals
console.log(
  `| all | | ${minutes} | ${faults} | ${starts} | ${tasks} | ${calls} | ${deliveries} | | | |`
)
