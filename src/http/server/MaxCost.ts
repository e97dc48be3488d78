import { Exit, Option } from "effect"
import * as Credits from "../../domain/Credits.ts"
import { invalid } from "../../domain/Problem.ts"
import type { Problem } from "../../domain/Problem.ts"
import { headerText } from "./HeaderText.ts"
import type { HeaderValues } from "./HeaderText.ts"

/** The header with the maximum cost of a create or a call. docs/reference/keys-and-limits.md#maximum-of-a-request */
export const maxCostHeader = (serviceName: string): string =>
  `x-${serviceName}-max-cost`.toLowerCase()

/** Reads the header; `undefined` if it is absent. Fails with 2001. */
export const readMaxCost = (
  headers: HeaderValues,
  name: string
): Exit.Exit<Credits.Credits | undefined, Problem> => {
  const text = headerText(headers, name)
  if (text === undefined) return none
  const amount = Option.filter(Credits.parse(text.trim()), (it) => it >= 0n)
  return Option.isSome(amount)
    ? Exit.succeed(amount.value)
    : Exit.fail(
        invalid([
          { pointer: `#/headers/${name}`, detail: 'Expected an amount of credits such as "7.50"' }
        ])
      )
}

const none = Exit.succeed(undefined)
