import type { Schemas } from "../../api/schema.ts"
import type { ShownRequest } from "../../components/code/snippets.ts"
import { parseJson } from "../../format/json.ts"

type Content = Schemas["CallContent"]

/** The request for a client to send again; `undefined` if it is incomplete. */
export const requestAsCode = ({ path, request }: Content): ShownRequest | undefined => {
  if (request === null || request.truncated) return undefined
  const body = parseJson(request.text)
  if (body === undefined) return undefined
  return { path, body }
}
