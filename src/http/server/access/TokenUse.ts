import { Context } from "effect"
import type { TokenHolder } from "../../../users/AccessTokens.ts"

/** The access token of the request. The routes then use models with the key of its user. docs/reference/mcp.md#oauth */
export const TokenUse = Context.Reference<TokenHolder | undefined>("gateway/http/TokenUse", {
  defaultValue: () => undefined
})
