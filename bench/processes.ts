import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

const numbers = (path: string): ReadonlyArray<number> => {
  try {
    return readFileSync(path, "utf8").trim().split(" ").map(Number)
  } catch {
    return []
  }
}

/**
 * The threads of a process. Empty once it has ended, which happens to Postgres processes when their connection closes.
 */
const threadsOf = (pid: number): ReadonlyArray<string> => {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

/** The CPU time of a process in microseconds, which depends less on the machine's load than real time. */
export const cpuMicros = (pid: number): number => {
  let nanos = 0
  for (const thread of threadsOf(pid)) {
    nanos += numbers(`/proc/${pid}/task/${thread}/schedstat`)[0] ?? 0
  }
  return nanos / 1000
}

/** A process and its descendants. */
const treeOf = (pid: number): ReadonlyArray<number> => [
  pid,
  ...threadsOf(pid)
    .flatMap((thread) => numbers(`/proc/${pid}/task/${thread}/children`))
    .filter((child) => child > 0)
    .flatMap(treeOf)
]

/** CPU time of a process and its descendants, in microseconds. */
export const treeCpuMicros = (pid: number): number =>
  treeOf(pid).reduce((sum, it) => sum + cpuMicros(it), 0)

const residentOf = (pid: number): number => {
  try {
    return Number(/VmRSS:\s+(\d+)/u.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0)
  } catch {
    return 0
  }
}

/** Resident memory of a process and its descendants. */
export const residentMiB = (pid: number): number =>
  treeOf(pid).reduce((sum, it) => sum + residentOf(it), 0) / 1024

const postmasterOf = (folder: string): number =>
  Number(readFileSync(join(folder, "data", "postmaster.pid"), "utf8").split("\n", 1)[0])

/** The processes of a Postgres: the children of its postmaster. */
const childrenOf = (pid: number): ReadonlyArray<number> =>
  numbers(`/proc/${pid}/task/${pid}/children`)

/** The CPU time of ended children, in ticks of 10 ms. */
const endedMicros = (pid: number): number => {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[13]) + Number(fields[14])) * 10_000
}

/**
 * The CPU time of the Postgres in a folder in microseconds, including closed connections. A process that ends between
 * two readings counts only after the postmaster has noticed.
 */
export const postgresCpuMicros = (folder: string): number => {
  const postmaster = postmasterOf(folder)
  return childrenOf(postmaster).reduce(
    (sum, pid) => sum + (numbers(`/proc/${pid}/schedstat`)[0] ?? 0) / 1000,
    endedMicros(postmaster)
  )
}
