/**
 * Milliseconds of CPU that this thread has used so far. Unlike a clock it does not count the work of other programs.
 */
export const cpuMillis = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1000
}
