import type { Schemas } from "../../api/schema.ts"
import type { ShownRequest } from "../../components/code/snippets.ts"

type Content = Schemas["CallContent"]

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** JSON with line breaks; any other text, such as events, unchanged. */
export const indented = (text: string): string => {
  const value = parsed(text)
  return value === undefined ? text : JSON.stringify(value, null, 2)
}

/** The request for a client to send again; `undefined` if it is incomplete. */
export const requestAsCode = ({ path, request }: Content): ShownRequest | undefined => {
  if (request === null || request.truncated) return undefined
  const body = parsed(request.text)
  if (body === undefined) return undefined
  return { path, body }
}
