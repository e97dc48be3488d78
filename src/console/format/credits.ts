import type { Schemas } from "../api/schema.ts"

/** Amounts of credits. The API's decimal texts are computed as whole millionths, without floating point. */

const decimals = 6
const unit = 10n ** BigInt(decimals)

/** Parses an amount into millionths of a credit. */
export const parseCredits = (text: string): bigint => {
  const [, sign = "", whole = "", fraction = ""] = /^(-?)(\d+)(?:\.(\d{1,6}))?$/u.exec(text) ?? []
  if (whole === "") throw new RangeError(`No amount of credits: ${text}`)
  const micro = BigInt(whole) * unit + BigInt(fraction.padEnd(decimals, "0"))
  return sign === "-" ? -micro : micro
}

/** Whether an amount can be sent: the API accepts at most two decimals. */
export const isCredits = (text: string): boolean => /^-?\d+(?:\.\d{1,2})?$/u.test(text)

/** Formats an amount like the API: with at least two decimals, and no more than it needs. */
export const textOfCredits = (micro: bigint): string => {
  const absolute = micro < 0n ? -micro : micro
  const fraction = String(absolute % unit)
    .padStart(decimals, "0")
    .replace(/0{1,4}$/u, "")
  return `${micro < 0n ? "-" : ""}${absolute / unit}.${fraction}`
}

/** Formats an amount for display: digits in groups of three, and a minus sign that is as wide as a digit. */
export const showCredits = (text: string): string => {
  const shown = textOfCredits(parseCredits(text)).replace("-", "−")
  const [whole = "", fraction = "00"] = shown.split(".")
  return `${whole.replaceAll(/\B(?=(?:\d{3})+$)/gu, ",")}.${fraction}`
}

/** What a call was charged; the API rounds it down, and most calls cost less than is shown. */
export const showCharge = (text: string): string =>
  parseCredits(text) === 0n ? "< 0.01" : showCredits(text)

/** The default threshold. docs/reference/wallet.md */
const thresholdByDefault = "1000.00"

type Alerting = Pick<Schemas["Wallet"], "state" | "settled_balance" | "trigger_threshold">

/** Whether the balance is below the alert. The state says so only if a webhook was told. */
export const isLow = ({ settled_balance, state, trigger_threshold }: Alerting): boolean =>
  state === "ALERTED" ||
  (trigger_threshold !== thresholdByDefault &&
    parseCredits(settled_balance) < parseCredits(trigger_threshold))

export const sumCredits = (texts: ReadonlyArray<string>): string =>
  textOfCredits(texts.reduce((sum, it) => sum + parseCredits(it), 0n))

/** The fraction that the first amount is of the second, from 0 to 1. Only for the length of a bar. */
export const shareOfCredits = (part: string, whole: string): number => {
  const all = parseCredits(whole)
  return all <= 0n ? 0 : Number((parseCredits(part) * 10_000n) / all) / 10_000
}
