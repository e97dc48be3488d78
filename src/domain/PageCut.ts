import type { Option } from "effect"

/** A page cut: ids before this one, newest first. */
export interface PageCut {
  readonly before: Option.Option<string>
  readonly limit: number
}
