import { Option } from "effect"
import { preferWaitSecondsMax } from "../../domain/Limits.ts"

const wait = /^wait\s*=\s*"?(\d{1,9})"?\s*(?:;.*)?$/iu

/**
 * Seconds of `Prefer: wait=N` (RFC 7240): at most 60 are granted, and of several the first counts.
 * What is no number is no preference, as the RFC has it. Contract 2.
 */
export const preferredWait = (header: string | undefined): Option.Option<number> => {
  for (const part of header?.split(",") ?? []) {
    const seconds = wait.exec(part.trim())?.[1]
    if (seconds !== undefined) return Option.some(Math.min(Number(seconds), preferWaitSecondsMax))
  }
  return Option.none()
}
