import { Context } from "effect"
import type { TokenHolder } from "../../../users/AccessTokens.ts"

/** The access token of the request, whose routes then use models with its user's key. docs/reference/mcp.md#oauth */
export const TokenUse = Context.Reference<TokenHolder | undefined>("gateway/http/TokenUse", {
  defaultValue: () => undefined
})
