import { viewedUser } from "../router/location.ts"
import { texts } from "../texts/en.ts"
import { basePath } from "./address.ts"
import { failureOf, Offline } from "./problem.ts"
import type { ApiFailure } from "./problem.ts"
import { pathsOfUser } from "./schema.ts"
import type { Init, Method, PathOf, ResponseOf } from "./schema.ts"

const call =
  <M extends Method>(method: M) =>
  async <P extends PathOf<M>>(template: P, init: Init<M, P>): Promise<ResponseOf<M, P>> => {
    const { body, header, path = {}, query = {} }: AnyInit = init
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) search.set(name, String(value))
    }
    const user = viewedUser()
    const isOfUser = method === "GET" && pathsOfUser.includes(template)
    // The user in the address, as whom the operator views the console
    if (user !== undefined && isOfUser && !search.has("user_id")) search.set("user_id", user)
    const filled = template.replaceAll(/\{(\w+)\}/gu, (_, name) =>
      encodeURIComponent(path[name] ?? "")
    )
    return send(method, search.size === 0 ? filled : `${filled}?${search}`, body, header)
  }

/** Any `Init`, as requests are made of it. */
interface AnyInit {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/**
 * The client of the management API: the body of a successful response. Rejects with `ApiFailure` or `Offline`.
 * Requests are authenticated by the session cookie alone.
 */
export const api = {
  GET: call("GET"),
  POST: call("POST"),
  PATCH: call("PATCH"),
  DELETE: call("DELETE")
}

class ViewOnly extends Error {}

/** Refuses changes while the operator views as a user, except ending the operator's own session. */
const refuseChange = (method: string, path: string): void => {
  const isOwnSession = path === `${basePath}/manage/v1/session`
  if (viewedUser() !== undefined && method !== "GET" && !isOwnSession) {
    throw new ViewOnly(texts.viewOnly)
  }
}

let onSignedOut = (): void => {}

/** Registers what to do when a request is refused because nobody is signed in any more. */
export const whenSignedOut = (handle: () => void): void => {
  onSignedOut = handle
}

const signedOutCodes = new Set([1001, 1006])

const reportSignedOut = (failure: ApiFailure): ApiFailure => {
  if (failure.problem.status === 401 && signedOutCodes.has(failure.problem.code)) onSignedOut()
  return failure
}

const reached = async <T>(answer: Promise<T>): Promise<T> => {
  try {
    return await answer
  } catch (cause) {
    const isAbort = cause instanceof DOMException && cause.name === "AbortError"
    if (isAbort || cause instanceof ViewOnly) throw cause
    throw new Offline("The gateway was not reached", { cause })
  }
}

/** Calls any route, such as those of models. `T` is the type in that route's documentation. */
export const send = async <T>(
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {}
): Promise<T> => {
  refuseChange(method, `${basePath}${path}`)
  const response = await reached(
    fetch(`${basePath}${path}`, {
      method,
      credentials: "same-origin",
      headers: body === undefined ? headers : { ...headers, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
  )
  const text = await reached(response.text())
  const isJson = /\bjson\b/u.test(response.headers.get("content-type") ?? "")
  const parsed = isJson && text !== "" ? JSON.parse(text) : text
  if (!response.ok) throw reportSignedOut(failureOf(response, parsed))
  return parsed
}
