import { DateTime, Option } from "effect"
import type { TaskSummary } from "./TaskHistoryStore.ts"

/** A result that the console can show. */
export interface Preview {
  readonly kind: "images" | "videos"
  /** The signed URL of the first result. */
  readonly url: string
  readonly expiresAt: DateTime.Utc
  /** How many results the task has. */
  readonly count: number
}

const artifactLink = /\/artifacts\/art_[0-9a-f]{32}\?expires=(\d{1,12})&/u

/** The first result, if it is an image or a video that the gateway still stores. */
export const previewOf = (
  { deletedAt, result, resultKind }: TaskSummary,
  now: DateTime.Utc
): Option.Option<Preview> => {
  const [url] = result ?? []
  const seconds = url === undefined ? undefined : artifactLink.exec(url)?.[1]
  if (resultKind !== "images" && resultKind !== "videos") return Option.none()
  if (result === null || url === undefined || seconds === undefined || deletedAt !== null) {
    return Option.none()
  }
  const expiresAt = DateTime.makeUnsafe(Number(seconds) * 1000)
  return DateTime.isGreaterThan(expiresAt, now)
    ? Option.some({ kind: resultKind, url, expiresAt, count: result.length })
    : Option.none()
}
