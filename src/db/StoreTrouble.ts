import { Option } from "effect"
import { SqlError } from "effect/sql"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { sqlState } from "./StoreFailures.ts"

/** What a responding server lacks, by SQLSTATE. */
const lacks = new Map([
  ["53100", "the disk of Postgres is full"],
  ["53200", "Postgres is out of memory"],
  ["53300", "Postgres takes no more connections"],
  ["53400", "Postgres has reached a limit of its configuration"],
  ["25006", "Postgres is read-only, as a standby is"],
  ["57P03", "Postgres starts, stops or recovers"],
  ["58030", "Postgres cannot read or write its files"]
])

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
