import type { Schemas } from "../../api/schema.ts"
import { operatorTexts } from "../../texts/en/operator.ts"

/** A word with a colour; the word alone says it. */
export const UserState = ({ of: { disabled } }: { readonly of: Schemas["User"] }) => (
  <span class={disabled ? "status bad" : "status good"}>
    {disabled ? operatorTexts.users.disabled : operatorTexts.users.active}
  </span>
)
