/**
 * Loaded before the service. Sets its clock `CLOCK_OFFSET` milliseconds ahead; each SIGUSR2 moves it by the next value
 * of `CLOCK_JUMPS`, in milliseconds.
 */
const jumps = (process.env["CLOCK_JUMPS"] ?? "").split(",").map(Number)
const real = Date.now
let offset = Number(process.env["CLOCK_OFFSET"] ?? 0)
Date.now = () => real() + offset
process.on("SIGUSR2", () => {
  offset += jumps.shift() ?? 0
})
