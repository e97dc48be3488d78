/**
 * Loaded before the service: its clock is `CLOCK_OFFSET` milliseconds ahead, and each SIGUSR2 moves it by the
 * next of `CLOCK_JUMPS`, in milliseconds.
 */
const jumps = (process.env["CLOCK_JUMPS"] ?? "").split(",").map(Number)
const real = Date.now
let offset = Number(process.env["CLOCK_OFFSET"] ?? 0)
Date.now = () => real() + offset
process.on("SIGUSR2", () => {
  offset += jumps.shift() ?? 0
})
