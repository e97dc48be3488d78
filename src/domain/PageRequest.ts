import type { Option } from "effect"

/** Which page of a list is read: at most `limit` rows, newest first, that come before this id. */
export interface PageRequest {
  readonly before: Option.Option<string>
  readonly limit: number
}
