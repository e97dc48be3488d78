import type { Schemas } from "./schema.ts"

export type Problem = Schemas["Problem"]

/** A refusal by the gateway, with the trace id by which the operator can find it. */
export class ApiFailure extends Error {
  readonly problem: Problem
  readonly traceId: string | undefined

  constructor(problem: Problem, traceId: string | undefined) {
    super(problem.title)
    this.problem = problem
    this.traceId = traceId
  }
}

/** The gateway could not be reached. */
export class Offline extends Error {}

const isProblem = (value: unknown): value is Problem =>
  typeof value === "object" && value !== null && "title" in value && "code" in value

/** The second part of `Traceparent`. */
export const traceIdOf = (response: Response): string | undefined =>
  response.headers.get("traceparent")?.split("-")[1]

/** The error of an unsuccessful response. Its body may come from a proxy in between. */
export const failureOf = (response: Response, body: unknown): ApiFailure =>
  new ApiFailure(
    isProblem(body)
      ? body
      : {
          type: "about:blank",
          title: response.statusText || `HTTP ${response.status}`,
          status: response.status,
          detail: typeof body === "string" ? body.slice(0, 500) : "",
          instance: "",
          code: 5000
        },
    traceIdOf(response)
  )
