import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** Clock ticks a second of `/proc` on every usual Linux. */
const ticksPerSecond = 100

interface Stat {
  readonly parent: number
  readonly micros: number
}

const statOf = (pid: number): Stat | undefined => {
  try {
    // The name in brackets may hold anything: fields are counted from behind it
    const text = readFileSync(`/proc/${pid}/stat`, "utf8")
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
    const ticks = Number(fields[11]) + Number(fields[12])
    return { parent: Number(fields[1]), micros: (ticks * 1e6) / ticksPerSecond }
  } catch {
    return undefined
  }
}

/** CPU time of a process so far, in microseconds: what does not depend on who else is running. */
export const cpuMicros = (pid: number): number => statOf(pid)?.micros ?? Number.NaN

/** The same of the tests' Postgres: its postmaster's children. */
export const postgresCpuMicros = (folder: string): number => {
  const postmaster = Number(
    readFileSync(join(folder, "data", "postmaster.pid"), "utf8").split("\n", 1)[0]
  )
  let sum = 0
  for (const name of readdirSync("/proc")) {
    const stat = /^\d+$/u.test(name) ? statOf(Number(name)) : undefined
    if (stat?.parent === postmaster) sum += stat.micros
  }
  return sum
}
