import createClient from "openapi-fetch"
import { viewedUser } from "../router/location.ts"
import { texts } from "../texts/en.ts"
import { basePath } from "./address.ts"
import { failureOf, Offline } from "./problem.ts"
import type { ApiFailure } from "./problem.ts"
import { pathsOfUser } from "./schema.ts"
import type { paths } from "./schema.ts"

/** The client of the management API. Requests are authenticated by the session cookie alone. */
export const api = createClient<paths>({ baseUrl: basePath, credentials: "same-origin" })

const templates = pathsOfUser.map((path) => new RegExp(`${path.replaceAll(/\{\w+\}/gu, "[^/]+")}$`))

api.use({
  // Adds the user in the address as whom the operator views the console
  onRequest: ({ request }) => {
    const user = viewedUser()
    refuseChange(request.method, new URL(request.url).pathname)
    if (user === undefined || request.method !== "GET") return undefined
    const url = new URL(request.url)
    if (url.searchParams.has("user_id")) return undefined
    if (!templates.some((template) => template.test(url.pathname))) return undefined
    url.searchParams.set("user_id", user)
    return new Request(url, request)
  }
})

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

interface Answer<T> {
  readonly data?: T
  readonly error?: unknown
  readonly response: Response
}

/** The body of a successful response. Rejects with `ApiFailure` or `Offline`. */
export const dataOf = async <T>(answer: Promise<Answer<T>>): Promise<T> => {
  const { data, error, response } = await reached(answer)
  if (!response.ok) throw reportSignedOut(failureOf(response, error))
  // oxlint-disable-next-line typescript/consistent-type-assertions -- without content there is none
  return data as T
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

export interface Reply<T> {
  readonly status: number
  readonly headers: Headers
  readonly body: T
}

/** Calls a route outside the management API, such as those of models. `T` is the type in that route's documentation. */
export const send = async <T>(
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {}
): Promise<Reply<T>> => {
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
  return { status: response.status, headers: response.headers, body: parsed }
}
