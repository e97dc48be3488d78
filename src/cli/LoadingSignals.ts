const signals = ["SIGTERM", "SIGINT"] as const

/**
 * Loads and runs a program. SIGTERM and SIGINT meanwhile, which may take a second, end the process in order: nothing
 * has begun. Without it they would end it as unhandled ones, and would be lost where it is process 1 of a container.
 * ADR 0155
 */
export const load = async (program: () => Promise<unknown>): Promise<void> => {
  const end = () => globalThis.process.exit(0)
  for (const signal of signals) globalThis.process.on(signal, end)
  await program()
  // It has handlers of its own now
  for (const signal of signals) globalThis.process.off(signal, end)
}
