import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

const numbers = (path: string): ReadonlyArray<number> => {
  try {
    return readFileSync(path, "utf8").trim().split(" ").map(Number)
  } catch {
    return []
  }
}

/** CPU time of a process, in microseconds: depends less on the load of the machine than wall time. */
export const cpuMicros = (pid: number): number => {
  let nanos = 0
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    nanos += numbers(`/proc/${pid}/task/${thread}/schedstat`)[0] ?? 0
  }
  return nanos / 1000
}

const parentOf = (pid: string): number => {
  try {
    // The name in brackets may contain anything: fields are counted after it
    const text = readFileSync(`/proc/${pid}/stat`, "utf8")
    return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1])
  } catch {
    return Number.NaN
  }
}

const postmasterOf = (folder: string): number =>
  Number(readFileSync(join(folder, "data", "postmaster.pid"), "utf8").split("\n", 1)[0])

/** The processes of the Postgres in a folder: the children of its postmaster. */
export const postgresProcesses = (folder: string): ReadonlyArray<number> => {
  const postmaster = postmasterOf(folder)
  return readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name) && parentOf(name) === postmaster)
    .map(Number)
}

/** Of the children that have ended: in ticks of 10 ms. */
const endedMicros = (pid: number): number => {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[13]) + Number(fields[14])) * 10_000
}

/** CPU time of that Postgres, in microseconds, with that of connections that were closed. */
export const postgresCpuMicros = (folder: string): number =>
  postgresProcesses(folder).reduce(
    (sum, pid) => sum + (numbers(`/proc/${pid}/schedstat`)[0] ?? 0) / 1000,
    endedMicros(postmasterOf(folder))
  )
