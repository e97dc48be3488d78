import { Schema } from "effect"

/** What an API key may be used for. docs/reference/keys-and-limits.md#scopes */
export const Scope = Schema.Literals(["inference", "manage"])
export type Scope = typeof Scope.Type
