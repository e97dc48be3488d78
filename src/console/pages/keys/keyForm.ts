import type { Schemas } from "../../api/schema.ts"
import { countOf, isCount } from "../../format/count.ts"
import { isCredits } from "../../format/credits.ts"
import { isoOfLocalInput, localInputOf } from "../../format/time.ts"
import { texts } from "../../texts/en.ts"

export type ApiKey = Schemas["ApiKey"]
export type Scope = ApiKey["scopes"][number]
type Reset = NonNullable<ApiKey["reset"]>

/** The key that the playground uses. docs/reference/sessions.md#inference */
export const isConsoleKey = ({ preview }: ApiKey): boolean => preview === "console"

export const resets: ReadonlyArray<Reset> = ["daily", "weekly", "monthly", "never"]
export const scopes: ReadonlyArray<Scope> = ["inference", "manage"]

/** The values of the key form, as typed. */
export interface KeyFields {
  readonly name: string
  readonly scopes: ReadonlyArray<Scope>
  readonly budget: string
  readonly reset: Reset
  /** One per line. */
  readonly models: string
  readonly rate: string
  readonly tasks: string
  readonly expires: string
}

export const fieldsOf = (key: ApiKey | undefined): KeyFields => ({
  name: key?.name ?? "",
  scopes: key?.scopes ?? ["inference"],
  budget: key?.spend_limit ?? "",
  reset: key?.reset ?? "monthly",
  models: key?.allowed_models?.join("\n") ?? "",
  rate: String(key?.rate_limit_per_minute ?? ""),
  tasks: String(key?.concurrent_tasks ?? ""),
  expires: key?.expires_at == null ? "" : localInputOf(key.expires_at)
})

const modelsOf = (text: string): Array<string> => [
  ...new Set(
    text
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "")
  )
]

/** All limits in the form. An empty field is no limit. */
const limitsOf = ({ budget, models, rate, tasks }: KeyFields) => {
  const allowed = modelsOf(models)
  return {
    spend_limit: budget.trim() === "" ? null : budget.trim(),
    allowed_models: allowed.length === 0 ? null : allowed,
    rate_limit_per_minute: countOf(rate),
    concurrent_tasks: countOf(tasks)
  }
}

const expiryOf = (fields: KeyFields): string | null => isoOfLocalInput(fields.expires) ?? null

export const newKeyOf = (fields: KeyFields): Schemas["NewApiKey"] => {
  const limits = limitsOf(fields)
  return {
    name: fields.name.trim(),
    scopes: [...fields.scopes],
    ...limits,
    ...(limits.spend_limit === null ? {} : { reset: fields.reset }),
    expires_at: expiryOf(fields)
  }
}

/** Only the changed fields: a budget that is not changed keeps its count. */
export const changeOf = (key: ApiKey, fields: KeyFields): Schemas["ApiKeyChange"] => {
  const before = fieldsOf(key)
  const limits = limitsOf(fields)
  return {
    ...(fields.name === before.name ? {} : { name: fields.name.trim() }),
    ...(fields.budget === before.budget ? {} : { spend_limit: limits.spend_limit }),
    ...(limits.spend_limit === null || fields.reset === key.reset ? {} : { reset: fields.reset }),
    ...(fields.models === before.models ? {} : { allowed_models: limits.allowed_models }),
    ...(fields.rate === before.rate ? {} : { rate_limit_per_minute: limits.rate_limit_per_minute }),
    ...(fields.tasks === before.tasks ? {} : { concurrent_tasks: limits.concurrent_tasks }),
    ...(fields.expires === before.expires ? {} : { expires_at: expiryOf(fields) })
  }
}

/** Faults that can be found without the gateway. */
export const faultsOf = ({ budget, rate, tasks }: KeyFields): ReadonlyMap<string, string> => {
  const faults = new Map<string, string>()
  const amount = budget.trim()
  if (amount !== "" && (!isCredits(amount) || amount.startsWith("-"))) {
    faults.set("budget", texts.form.noAmount)
  }
  if (!isCount(rate)) faults.set("rate", texts.form.noCount)
  if (!isCount(tasks)) faults.set("tasks", texts.form.noCount)
  return faults
}
