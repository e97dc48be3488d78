import { Effect } from "effect"
import { roleVariable } from "./processes/Messages.ts"

/**
 * The service, which `src/main.ts` and `gateway serve` run until they are stopped. With `PROCESSES` this is the
 * supervisor of the serving processes, which loads only a small part of the code.
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

/** Ends the process that ran the service; the exit code of a requested end is 0. ADR 0155. */
export { teardown } from "./Logging.ts"
