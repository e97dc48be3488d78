import { Option } from "effect"
import { SqlError } from "effect/sql"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { lacks } from "./DatabaseUnavailable.ts"
import { sqlState } from "./StoreFailures.ts"

/** Why the store does not work now, for the operator. docs/operating.md#gatewaystoreaway */
export const storeTrouble = ({ cause }: StoreUnavailable): string => {
  const state = SqlError.isSqlError(cause) ? sqlState(cause) : Option.none()
  return Option.match(
    Option.filter(state, (code) => /^[0-9A-Z]{5}$/u.test(code)),
    {
      onNone: () => (typeof cause === "string" ? cause : "Postgres does not respond"),
      onSome: (code) => `${lacks.get(code) ?? "Postgres refuses writes"} (SQLSTATE ${code})`
    }
  )
}
