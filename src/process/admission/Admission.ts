import { Context, Effect } from "effect"
import { AdmissionLimiter } from "./AdmissionLimiter.ts"

/** The kinds of new work. A process accepts only as much of each as it can handle. */
export interface AdmissionService {
  /** Creates of tasks. */
  readonly creates: AdmissionLimiter
  /** Passthrough calls. */
  readonly calls: AdmissionLimiter
}

/**
 * Limits for creates and calls, including short bursts. The cost of a call or a stream is spread over three to five
 * turns of the event loop; a create waits for a shared commit. bench/README.md has the figures.
 */
export const makeAdmission = (): AdmissionService => {
  const creates = { usual: 128, most: 512 }
  const calls = { usual: 256, most: 1024 }
  return {
    creates: new AdmissionLimiter({
      turn: { ...creates, least: 8, delayMillisMax: 4 },
      store: { ...creates, least: 20, delayMillisMax: 10 }
    }),
    calls: new AdmissionLimiter({
      turn: { ...calls, least: 4, delayMillisMax: 3 },
      store: { ...calls, least: 16, delayMillisMax: 10 }
    })
  }
}

/** One instance per process, which has one event loop and one connection pool. ADR 0207. */
export const Admission = Context.Reference<AdmissionService>("gateway/process/Admission", {
  defaultValue: makeAdmission
})

/**
 * Counts a caller's operation on the store as work in hand until the returned function is first called. Uses real time,
 * because it measures the machine.
 */
export const begun = (limiter: AdmissionLimiter, caller: string): (() => void) => {
  const from = performance.now()
  let isOpen = true
  limiter.begin(caller)
  return () => {
    if (!isOpen) return
    isOpen = false
    const now = performance.now()
    limiter.end(caller, now, now - from)
  }
}

/** Counts an effect the same way. */
export const counted = <A, E, R>(
  limiter: AdmissionLimiter,
  caller: string,
  operation: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const ended = begun(limiter, caller)
    return Effect.onExit(operation, () => Effect.sync(ended))
  })
