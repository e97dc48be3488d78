const signals = ["SIGTERM", "SIGINT"] as const

/**
 * Loads and runs a program. While it loads, which may take a second, SIGTERM and SIGINT end the process with status 0,
 * because nothing has started. Unhandled, they would end it with an error, or be lost in process 1 of a container.
 * ADR 0155
 */
export const load = async (program: () => Promise<unknown>): Promise<void> => {
  const end = () => globalThis.process.exit(0)
  for (const signal of signals) globalThis.process.on(signal, end)
  await program()
  // From here on the program has its own handlers
  for (const signal of signals) globalThis.process.off(signal, end)
}
