import type { Schemas } from "../../api/schema.ts"
import { operatorTexts } from "../../texts/en/operator.ts"

/** A word with a color. The color adds no information. */
export const UserState = ({ of: { disabled } }: { readonly of: Schemas["User"] }) => (
  <span class={disabled ? "status bad" : "status good"}>
    {disabled ? operatorTexts.users.disabled : operatorTexts.users.active}
  </span>
)
