/**
 * Milliseconds of CPU time that this thread has used so far. Unlike a clock, it excludes the work of other programs.
 */
export const cpuMillis = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1000
}
