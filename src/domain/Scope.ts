import { Schema } from "effect"

/** What an API key may be used for. Contract 3. */
export const Scope = Schema.Literals(["inference", "manage"])
export type Scope = typeof Scope.Type
