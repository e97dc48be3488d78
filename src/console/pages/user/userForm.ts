import type { Schemas } from "../../api/schema.ts"
import { countOf, isCount } from "../../format/count.ts"
import { isCredits } from "../../format/credits.ts"
import { texts } from "../../texts/en.ts"

export type User = Schemas["User"]

/** The values of the user form, as typed. */
export interface UserFields {
  readonly email: string
  readonly name: string
  readonly password: string
  readonly threshold: string
  readonly rate: string
  readonly tasks: string
}

export const fieldsOf = (user: User | undefined): UserFields => ({
  email: user?.email ?? "",
  name: user?.name ?? "",
  password: "",
  threshold: user?.trigger_threshold ?? "",
  rate: String(user?.rate_limit_per_minute ?? ""),
  tasks: String(user?.concurrent_tasks ?? "")
})

const nameOf = (text: string): string | null => (text.trim() === "" ? null : text.trim())

export const newUserOf = ({ email, name, password }: UserFields) => ({
  email: email.trim(),
  name: nameOf(name),
  ...(password === "" ? {} : { password })
})

/** Only the fields that the form changes. */
export const changeOf = (user: User, fields: UserFields): Schemas["UserChange"] => {
  const before = fieldsOf(user)
  const { email, name, password, rate, tasks, threshold } = fields
  return {
    ...(email === before.email ? {} : { email: email.trim() }),
    ...(name === before.name ? {} : { name: nameOf(name) }),
    ...(password === "" ? {} : { password }),
    ...(threshold === before.threshold ? {} : { trigger_threshold: threshold.trim() }),
    ...(rate === before.rate ? {} : { rate_limit_per_minute: countOf(rate) }),
    ...(tasks === before.tasks ? {} : { concurrent_tasks: countOf(tasks) })
  }
}

/** Faults that can be found without the gateway. A new user has no limits yet. */
export const faultsOf = (
  { rate, tasks, threshold }: UserFields,
  isNew: boolean
): ReadonlyMap<string, string> => {
  const faults = new Map<string, string>()
  if (isNew) return faults
  if (!isCredits(threshold.trim()) || threshold.trim().startsWith("-")) {
    faults.set("threshold", texts.form.noAmount)
  }
  if (!isCount(rate)) faults.set("rate", texts.form.noCount)
  if (!isCount(tasks)) faults.set("tasks", texts.form.noCount)
  return faults
}
