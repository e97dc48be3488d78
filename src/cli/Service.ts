import { Effect } from "effect"
import { roleVariable } from "./processes/Messages.ts"

/**
 * The service: what `src/main.ts` and `gateway serve` run until they are stopped. With `PROCESSES` it is the supervisor
 * of the processes that serve, which needs little of what they load.
 */
export const service = Effect.suspend(() => {
  const { env } = globalThis.process
  const isSupervisor = (env["PROCESSES"] ?? "") !== "" && env[roleVariable] === undefined
  return isSupervisor
    ? Effect.promise(() => import("./processes/Supervisor.ts")).pipe(
        Effect.flatMap(({ supervisor }) => supervisor)
      )
    : Effect.promise(() => import("./ServiceLayers.ts")).pipe(
        Effect.flatMap(({ oneProcess }) => oneProcess)
      )
})

/** The end of a process that runs it: a requested, orderly end is 0. ADR 0155. */
export { teardown } from "./Logging.ts"
