/** How often each fault test kills the service at a chosen moment. Raise it by `KILL_ROUNDS` for a longer search. */
export const killRounds = Number(process.env["KILL_ROUNDS"] ?? 2)

/** The wait before the kill of a round: the rounds divide the phases, which take `millis` together, evenly. */
export const killAfter = (round: number, millis: number): number =>
  ((round + 0.5) / killRounds) * millis
