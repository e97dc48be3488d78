import { Option } from "effect"
import { preferWaitSecondsMax } from "../../domain/limits/Limits.ts"

const waitPreference = /^wait\s*=\s*"?(\d{1,9})"?\s*(?:;.*)?$/iu

/**
 * Seconds of `Prefer: wait=N` (RFC 7240), at most 60. If there are several, the first counts. A malformed preference is
 * ignored, as the RFC requires. docs/reference/tasks.md#waiting
 */
export const preferredWait = (header: string | undefined): Option.Option<number> => {
  for (const part of header?.split(",") ?? []) {
    const seconds = waitPreference.exec(part.trim())?.[1]
    if (seconds !== undefined) return Option.some(Math.min(Number(seconds), preferWaitSecondsMax))
  }
  return Option.none()
}

/** Whether the request has `Prefer: respond-async` (RFC 7240). docs/reference/shapes.md#waiting-for-a-task */
export const prefersAsync = (header: string | undefined): boolean =>
  (header ?? "").split(",").some((part) => /^respond-async\s*(?:;|$)/iu.test(part.trim()))
