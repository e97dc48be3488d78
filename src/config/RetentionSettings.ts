import { Config, Duration, Effect, Option } from "effect"
import {
  auditDays,
  deliveryLogDays,
  retentionDaysMax,
  retentionDaysMin
} from "../domain/limits/Limits.ts"
import { every, fault, read } from "./Setting.ts"
import type { ConfigFault } from "./Setting.ts"

/** Retention times. docs/reference/privacy.md#retention */
export interface RetentionSettings {
  /** How long finished tasks are kept; `None` means forever. */
  readonly tasks: Option.Option<Duration.Duration>
  /** How long prompts and inputs of tasks are kept; `None` means as long as the task. */
  readonly bodies: Option.Option<Duration.Duration>
  /** How long the delivery log and call receipts are kept. */
  readonly log: Duration.Duration
  readonly audit: Duration.Duration
}

const max = Duration.days(retentionDaysMax)

/** `min`: younger data are still in use, or share a partition with data that are. */
const setting = (name: string, min: `${number} ${Duration.Unit}`) => {
  const remedy = `set a duration from ${min} to ${retentionDaysMax} days, such as 90 days`
  return read(name, Config.option(Config.Duration(name)), remedy).pipe(
    Effect.flatMap((value) =>
      Option.isNone(value) ||
      Duration.between(value.value, { minimum: Duration.fromInputUnsafe(min), maximum: max })
        ? Effect.succeed(value)
        : Effect.fail(fault(name, `${Duration.format(value.value)} is out of bounds`, remedy))
    )
  )
}

const day = `${retentionDaysMin} day` as const

const settingOr = (name: string, days: number) =>
  Effect.map(
    setting(name, day),
    Option.getOrElse(() => Duration.days(days))
  )

export const retentionSettings: Effect.Effect<RetentionSettings, ConfigFault> = every({
  tasks: setting("TASK_RETENTION", day),
  bodies: setting("BODY_RETENTION", "1 hour"),
  log: settingOr("LOG_RETENTION", deliveryLogDays),
  audit: settingOr("AUDIT_RETENTION", auditDays)
})
