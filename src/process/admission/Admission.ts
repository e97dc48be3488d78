import { Context, Effect } from "effect"
import { AdmissionLimiter } from "./AdmissionLimiter.ts"

/** Kinds of new work; a process accepts no more of each than it can do. */
export interface AdmissionService {
  /** Creates of tasks. */
  readonly creates: AdmissionLimiter
  /** Passthrough calls. */
  readonly calls: AdmissionLimiter
}

/**
 * This many creates and calls are accepted in a short burst. The cost of a call or a stream is spread over
 * three to five turns of the event loop; a create waits for a shared commit. Figures in bench/README.md.
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

/** One per process, which has one event loop and one pool. ADR 0207. */
export const Admission = Context.Reference<AdmissionService>("gateway/process/Admission", {
  defaultValue: makeAdmission
})

/**
 * A caller's operation on the store counts as work in hand until the returned function is called; further calls
 * have no effect. Uses real time, because it measures the machine.
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

/** The same for an effect. */
export const counted = <A, E, R>(
  limiter: AdmissionLimiter,
  caller: string,
  operation: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const ended = begun(limiter, caller)
    return Effect.onExit(operation, () => Effect.sync(ended))
  })
