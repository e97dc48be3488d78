import type { Option } from "effect"

/** A page of a list: at most `limit` rows before this id, newest first. */
export interface PageRequest {
  readonly before: Option.Option<string>
  readonly limit: number
}
