import { Effect, Schema } from "effect"
import { decimal } from "../../catalog/jobs/Expression.ts"
import type { Polled } from "../../catalog/jobs/JobProtocol.ts"
import { textAt } from "../../catalog/jobs/JsonPath.ts"
import { ResultKind } from "../../domain/task/Task.ts"
import { isSameOrigin } from "../BaseUrl.ts"
import type { Handle, SubmitRequest } from "../VendorClient.ts"
import { VendorError } from "../VendorError.ts"
import { urlOf } from "./JobUrl.ts"

/** The members of a handle beside the values that the description names. */
const Members = Schema.Struct({
  submittedAtMillis: Schema.Finite,
  result: Schema.optionalKey(ResultKind),
  output: Schema.optionalKey(Schema.Array(Schema.String)),
  /** The model's body is not described, so its price reads no figures. */
  isLabelled: Schema.optionalKey(Schema.Literal(true))
})
export type Job = Handle & typeof Members.Type
const isJob: (handle: Handle) => handle is Job = Schema.is(Members)

/** The members of a handle that the request determines. */
export const membersOf = (
  { described, output, result, upstreamModel: model }: SubmitRequest,
  submittedAtMillis: number
) => ({
  model,
  submittedAtMillis,
  result,
  ...(output === undefined ? {} : { output }),
  ...(described === undefined ? { isLabelled: true } : {})
})

const lost = (message: string) => new VendorError({ class: "LOST", message })

/** Reads a stored handle; fails if a URL that gets the key has another origin than the account. */
export const jobOf = (
  { handle: paths }: Polled,
  base: string,
  handle: Handle
): Effect.Effect<Job, VendorError> => {
  const isElsewhere = (name: string) =>
    typeof paths[name] === "object" && !isSameOrigin(base, String(handle[name] ?? base))
  return isJob(handle) && !Object.keys(paths).some(isElsewhere)
    ? Effect.succeed(handle)
    : Effect.fail(lost("The job's handle is not of this account and its description"))
}

/** The values that later requests need. `json` is the response that names them. */
export const valuesIn = (
  { handle: paths }: Polled,
  base: string,
  job: { readonly id: string; readonly model: string },
  json: unknown
) => {
  const values = Object.entries(paths).flatMap(([name, at]) => {
    const named = textAt([typeof at === "string" ? at : at.url], json)
    const text = typeof at === "string" ? named : ownUrl(base, named, at.or, job)
    return text === undefined || text === "" ? [] : [[name, text] as const]
  })
  return { ...Object.fromEntries(values), id: job.id }
}

/** The URL that the vendor named if it has the base's origin, because the key is sent to it; else that of the path. */
const ownUrl = (
  base: string,
  named: string | undefined,
  path: string,
  values: Readonly<Record<string, string>>
) => (named !== undefined && isSameOrigin(base, named) ? named : urlOf(base, path, values))

/** The URL of a request about a job. A handle without the values of the path does not belong to this description. */
export const jobUrl = (base: string, path: string, job: Job) => {
  const url = urlOf(base, path, job)
  return url === undefined
    ? Effect.fail(lost("The job's handle does not have what its path needs"))
    : Effect.succeed(url)
}

/** The vendor's id of a job. */
export const idOf = ({ id }: Job): string => String(id ?? "")

/** The numbers in a handle. Some vendors report the cost of a job only in the response to its submit. */
export const figuresIn = (job: Job) =>
  Object.fromEntries(
    Object.entries(job).flatMap(([name, value]) =>
      typeof value === "string" && !own.has(name) && isFigure(value) ? [[name, value]] : []
    )
  )

/** Members that are not figures. */
const own: ReadonlySet<string> = new Set(["id", "model"])

const isFigure = (text: string): boolean => decimal.test(text) && !text.startsWith("-")
