/**
 * How often each fault test kills the service at a chosen moment. Increase it with `KILL_ROUNDS` for a longer search.
 */
export const killRounds = Number(process.env["KILL_ROUNDS"] ?? 2)

/**
 * How long to wait before the kill of a round. The rounds are spread evenly over the phases, which take `millis` in
 * total.
 */
export const killAfter = (round: number, millis: number): number =>
  ((round + 0.5) / killRounds) * millis
