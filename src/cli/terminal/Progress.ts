import { Clock, Console, Context, Effect } from "effect"

/** Where progress is printed: stderr, so that stdout contains only the result. */
export const ProgressTarget = Context.Reference<{
  /** Whether lines may be overwritten, because a person is watching. */
  readonly isLive: boolean
  readonly write: (text: string) => void
}>("gateway/cli/ProgressTarget", {
  defaultValue: () => ({
    isLive: globalThis.process.stderr.isTTY === true && globalThis.process.env["TERM"] !== "dumb",
    write: (text) => void globalThis.process.stderr.write(text)
  })
})

const width = 24

/**
 * The progress bar. The duration of a job is unknown, so the bar approaches its end and reaches it only when the job is
 * done.
 */
const barOf = (seconds: number, isDone: boolean): string => {
  const full = isDone ? width : Math.floor((width * seconds) / (seconds + 10))
  return `[${"#".repeat(full)}${"-".repeat(width - full)}]`
}

export interface Progress {
  /** Shows the state. If nobody is watching, prints one line per new state. */
  readonly show: (state: string) => Effect.Effect<void>
  readonly end: Effect.Effect<void>
}

/** A progress bar for one job, starting now. */
export const makeProgress = (label: string, isQuiet: boolean): Effect.Effect<Progress> =>
  Effect.gen(function* () {
    const { isLive, write } = yield* ProgressTarget
    const began = yield* Clock.currentTimeMillis
    let last = ""
    let shown = ""
    const draw = (state: string, millis: number) => {
      const seconds = (millis - began) / 1000
      const isDone = state === "completed"
      shown = `${barOf(seconds, isDone)} ${state} ${seconds.toFixed(0)} s`
      write(`\r\u001b[K${label} ${shown}`)
    }
    return {
      show: (state) =>
        Effect.suspend(() => {
          const isOther = state !== last
          last = state
          if (isQuiet) return Effect.void
          if (isLive) return Effect.map(Clock.currentTimeMillis, (now) => draw(state, now))
          return isOther ? Console.error(`${label} ${state}`) : Effect.void
        }),
      end: Effect.sync(() => {
        if (isLive && !isQuiet && shown !== "") write("\n")
      })
    }
  })
