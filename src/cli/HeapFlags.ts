/** Flags that keep the heap of a service small and its collection cheap, as in `npm start` and the image. ADR 0233 */
export const heapFlags = [
  "--max-semi-space-size=16",
  "--heap-growing-percent=100",
  "--no-allocation-site-pretenuring",
  "--v8-pool-size=1"
] as const

/** The name of a flag, in any spelling, such as `max-semi-space-size`. */
const nameOf = (flag: string): string =>
  flag
    .replace(/^--(?:no-?)?/u, "")
    .replace(/=.*$/su, "")
    .replaceAll("_", "-")

/** The flags that neither the command line nor `NODE_OPTIONS` sets to any value. */
export const missingFlags = (
  execArgv: ReadonlyArray<string>,
  nodeOptions: string
): ReadonlyArray<string> => {
  const given = new Set([...execArgv, ...nodeOptions.split(/\s+/u)].map(nameOf))
  return heapFlags.filter((flag) => !given.has(nameOf(flag)))
}

/**
 * Restarts this program with the missing flags in the same process, keeping its id, files and signals (execve). V8
 * reads the size of its young generation only once, so it cannot be set later. Returns if no flag is missing, and where
 * Node does not support execve: on Windows, on other runtimes, and in a child with an IPC channel. ADR 0233
 */
export const withHeapFlags = (): void => {
  const { argv, channel, env, execArgv, execPath, execve, platform, versions } = globalThis.process
  const isNode = versions["deno"] === undefined && versions["bun"] === undefined
  if (!isNode || execve === undefined || platform === "win32" || channel) return
  const missing = missingFlags(execArgv, env["NODE_OPTIONS"] ?? "")
  if (missing.length === 0) return
  try {
    execve(execPath, [execPath, ...missing, ...execArgv, ...argv.slice(1)], env)
  } catch {
    // Not allowed, for example by Node's permission model: continue without the flags
  }
}
