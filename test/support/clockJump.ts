/** Loaded before the service: each SIGUSR2 moves its clock by the next of `CLOCK_JUMPS`, in milliseconds. */
const jumps = (process.env["CLOCK_JUMPS"] ?? "").split(",").map(Number)
const real = Date.now
let offset = 0
Date.now = () => real() + offset
process.on("SIGUSR2", () => {
  offset += jumps.shift() ?? 0
})
