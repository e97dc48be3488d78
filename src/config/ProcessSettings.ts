import { Config, Effect, Option, Schema } from "effect"
import { availableParallelism } from "node:os"
import { every, fault, read } from "./Setting.ts"
import type { ConfigFault } from "./Setting.ts"

const processesMax = 64
const processesRemedy = `set auto, or a whole number from 1 to ${processesMax}`

/** Connections in the pools of one command. docs/reference/processes.md#connections */
const poolDefault = 10
const poolMin = 2
const poolMax = 1000
const poolFromString = Schema.NumberFromString.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: poolMin, maximum: poolMax })
)

/** Reads `PROCESSES` and `DB_POOL`. docs/reference/processes.md#all-cores-of-a-machine */
export const processSettings = Effect.fnUntraced(function* (hasPostgres: boolean) {
  const { given, processes } = yield* every({
    processes: processCount(hasPostgres),
    given: read(
      "DB_POOL",
      Config.option(Config.schema(poolFromString, "DB_POOL")),
      `set a whole number from ${poolMin} to ${poolMax}, such as ${poolDefault}`
    )
  })
  const least = poolMin * processes
  const pool = Option.getOrElse(given, () => Math.max(poolDefault, least))
  if (pool < least) {
    return yield* fault(
      "DB_POOL",
      `${pool} is too few for ${processes} processes`,
      `set at least ${least}`
    )
  }
  return { processes, pool: Math.floor(pool / processes) }
})

const processCount = (hasPostgres: boolean): Effect.Effect<number, ConfigFault> =>
  Effect.gen(function* () {
    const given = yield* read(
      "PROCESSES",
      Config.option(Config.NonEmptyString("PROCESSES")),
      processesRemedy
    )
    if (Option.isNone(given)) return 1
    const { platform, versions } = globalThis.process
    if (platform !== "linux" || versions["deno"] !== undefined) {
      return yield* fault("PROCESSES", "is supported with Node on Linux only", "remove it")
    }
    if (!hasPostgres) {
      const problem = "the embedded store serves one process"
      return yield* fault("PROCESSES", problem, "set DATABASE_URL, or remove it")
    }
    if (given.value === "auto") return Math.min(availableParallelism(), processesMax)
    const count = /^\d{1,3}$/u.test(given.value) ? Number(given.value) : 0
    return count >= 1 && count <= processesMax
      ? count
      : yield* fault("PROCESSES", `"${given.value}" is not a number of processes`, processesRemedy)
  })
