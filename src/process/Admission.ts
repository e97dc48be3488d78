import { Context, Effect } from "effect"
import { AdmissionLimiter } from "./AdmissionLimiter.ts"

/** Kinds of new work, of which a process takes no more than it can do. */
export interface AdmissionService {
  /** Creates of tasks. */
  readonly creates: AdmissionLimiter
  /** Passthrough calls. */
  readonly calls: AdmissionLimiter
}

/**
 * So many creates are never refused for a short time, and so many calls. What a call or a stream costs is
 * spread over turns of the loop, three to five of them; a create waits for one commit of many. Figures in
 * bench/README.md.
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

/** One for the process: it has one event loop and one pool. ADR 0207. */
export const Admission = Context.Reference<AdmissionService>("gateway/process/Admission", {
  defaultValue: makeAdmission
})

/**
 * An operation of a caller on the store is work in hand until what is returned is called; once counts.
 * Real time: it measures the machine.
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
