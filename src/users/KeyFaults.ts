import { DateTime, Effect } from "effect"
import type { Option } from "effect"
import { Problem, problem } from "../domain/Problem.ts"
import type { AdmittedKey } from "./AdmissionStore.ts"

/**
 * The problem returned when a replaced secret tries to change access.
 * docs/reference/keys-and-limits.md#who-changes-access
 */
export const previousSecret = new Problem({
  code: 1003,
  detail: "This secret of the API key was replaced by a rotation: use the new one for this request",
  forbidden: true
})

export const malformed = problem(
  1002,
  "This API key is malformed: check that it was copied completely"
)

export const unknown = problem(1002, "This API key is unknown")

export const known = <A>(found: Option.Option<A>): Effect.Effect<A, Problem> =>
  Effect.mapError(Effect.fromOption(found), () => unknown)

export const outOfScope = Effect.fail(problem(1004, "This API key lacks the scope inference"))

export const faultOf = (
  row: Pick<AdmittedKey, "disabledAt" | "expiresAt" | "previousUntil" | "revokedAt">,
  now: DateTime.Utc
): Problem | undefined => {
  if (row.revokedAt !== null) return problem(1003, "This API key was revoked")
  if (row.disabledAt !== null) return problem(1003, "The user of this API key is disabled")
  const { previousUntil } = row
  if (
    previousUntil !== undefined &&
    (previousUntil === null || DateTime.isLessThanOrEqualTo(previousUntil, now))
  ) {
    return problem(1003, "This API key was replaced by a rotation")
  }
  return row.expiresAt !== null && DateTime.isLessThanOrEqualTo(row.expiresAt, now)
    ? problem(1003, "This API key has expired")
    : undefined
}
