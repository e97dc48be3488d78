/**
 * Milliseconds of CPU that this thread has used so far. Unlike a clock it does not count what other
 * programs of the machine do meanwhile.
 */
export const cpuMillis = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1000
}
