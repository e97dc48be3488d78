import { Option, Schema, SchemaTransformation } from "effect"
import { balanceCreditsMax } from "./limits/Limits.ts"

/**
 * Money in micro-credits, always an integer: 1 credit is 1,000,000 micro-credits, 100 credits are
 * 1 US dollar. On the wire: strings with two decimals. docs/reference/wallet.md#amounts
 */
export const Credits = Schema.BigInt.pipe(Schema.brand("Credits"))
export type Credits = typeof Credits.Type

export const microPerCredit = 1_000_000n

export const make = (micro: bigint): Credits => Credits.make(micro)

export const zero: Credits = make(0n)

const cent = microPerCredit / 100n

/** In whole cents, rounded towards negative infinity. */
const centsOf = (amount: bigint): bigint =>
  amount / cent - (amount < 0n && amount % cent !== 0n ? 1n : 0n)

/**
 * The change between two displayed balances, so that the rows of a displayed ledger add up. A change with two decimals
 * is displayed exactly. ADR 0256
 */
export const shownChange = (before: bigint, after: bigint): Credits =>
  make((centsOf(after) - centsOf(before)) * cent)

/**
 * Formats with two decimals, rounded down (towards negative infinity), so that a balance is never shown higher than it
 * is.
 */
export const format = (amount: Credits): string => {
  const floored = centsOf(amount)
  const sign = floored < 0n ? "-" : ""
  const absolute = floored < 0n ? -floored : floored
  return `${sign}${absolute / 100n}.${(absolute % 100n).toString().padStart(2, "0")}`
}

/** Formats with all significant decimals, at least two, so that a price is shown exactly as charged. */
export const formatExact = (amount: Credits): string => {
  const absolute = amount < 0n ? -amount : amount
  const decimals = (absolute % microPerCredit)
    .toString()
    .padStart(6, "0")
    .replace(/0{1,4}$/u, "")
  return `${amount < 0n ? "-" : ""}${absolute / microPerCredit}.${decimals}`
}

const decimal = /^(-?)(\d{1,13})(?:\.(\d{1,6}))?$/

const max = balanceCreditsMax * microPerCredit

/**
 * Caps an amount requested from a wallet just above what a wallet can hold, so that every larger amount is refused in
 * the same way.
 */
export const bounded = (amount: bigint): Credits => make(amount > max ? max + 1n : amount)

/** Reads a decimal string of credits with up to six decimals. */
export const parse = (text: string): Option.Option<Credits> => {
  const match = decimal.exec(text)
  if (match === null) return Option.none()
  const micro = BigInt(match[2] ?? "0") * microPerCredit + BigInt((match[3] ?? "").padEnd(6, "0"))
  return Option.some(make(match[1] === "-" ? -micro : micro))
}

const amountShownBy = (show: (amount: Credits) => string) =>
  Schema.String.annotate({
    description: "An amount of credits as a decimal string; 100 credits are 1 US dollar",
    examples: ["7.50"]
  }).pipe(
    Schema.check(
      Schema.isPattern(decimal, { expected: 'a decimal amount of credits such as "7.50"' })
    ),
    Schema.decodeTo(
      Credits.check(
        Schema.isBetweenBigInt(
          { minimum: -max, maximum: max },
          { message: `Expected at most ${balanceCreditsMax} credits` }
        )
      ),
      SchemaTransformation.transform({
        decode: (text: string): bigint => Option.getOrElse(parse(text), () => zero),
        encode: (micro: bigint) => show(make(micro))
      })
    )
  )

/** An amount on the wire: a decimal string such as `"7.50"`, at most two decimals shown. */
export const CreditsFromString = amountShownBy(format)

/** The same with all decimals. */
export const ExactCreditsFromString = amountShownBy(formatExact)

/**
 * An amount that a client sends and the gateway stores. It has at most two decimals, so it is displayed as it was sent.
 * ADR 0256
 */
export const SentCredits = CreditsFromString.check(
  Schema.makeFilter<bigint>((amount) => amount % cent === 0n || "Expected at most two decimals")
)
