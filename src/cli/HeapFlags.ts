/** Keep the heap of a service small and its collection cheap, as `npm start` and the image do. ADR 0233 */
export const heapFlags = [
  "--max-semi-space-size=16",
  "--heap-growing-percent=100",
  "--no-allocation-site-pretenuring"
] as const

/** `max-semi-space-size`, however it is written. */
const nameOf = (flag: string): string =>
  flag
    .replace(/^--(?:no-?)?/u, "")
    .replace(/=.*$/su, "")
    .replaceAll("_", "-")

/** Those that neither the command line nor `NODE_OPTIONS` has set, to this or another value. */
export const missingFlags = (
  execArgv: ReadonlyArray<string>,
  nodeOptions: string
): ReadonlyArray<string> => {
  const given = new Set([...execArgv, ...nodeOptions.split(/\s+/u)].map(nameOf))
  return heapFlags.filter((flag) => !given.has(nameOf(flag)))
}

/**
 * Begins this program anew with the flags that are missing: the same process with the same id, files and signals
 * (execve). V8 reads the size of its young generation once, so that it cannot be set later. Returns when nothing is
 * missing, and where Node cannot do it: on Windows, on other runtimes, and as a child that talks with its parent.
 * ADR 0233
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
    // Not allowed, such as by Node's permission model: it runs as it is
  }
}
