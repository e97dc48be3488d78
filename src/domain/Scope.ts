import { Schema } from "effect"

/** Permissions of an API key. docs/reference/keys-and-limits.md#scopes */
export const Scope = Schema.Literals(["inference", "manage"])
export type Scope = typeof Scope.Type
