import { createHmac } from "node:crypto"
import type { JobModel } from "../../catalog/jobs/JobModel.ts"
import { polledOf } from "../../catalog/jobs/JobProtocol.ts"
import type { JobAuth, JobProtocol, OwnResults, Polled } from "../../catalog/jobs/JobProtocol.ts"
import { countOf } from "../../catalog/Price.ts"
import type { Vendor } from "../../catalog/Vendors.ts"
import { credentialOf } from "../../vendors/described/JobAuth.ts"
import {
  playDone,
  playFailed,
  playHandle,
  playRefusal,
  playResults,
  playRunning,
  playUnknown,
  playUpload
} from "../../vendors/described/JobPlayer.ts"
import type { Played, PlayedResults } from "../../vendors/described/JobPlayer.ts"
import { urlOf } from "../../vendors/described/JobUrl.ts"
import { formOf } from "../../vendors/described/ModelForm.ts"
import type { VendorErrorClass } from "../../vendors/VendorError.ts"
import type {
  Job,
  MadeFile,
  MadeKind,
  Protocol,
  Reply,
  Vendor as PlayedVendor
} from "./Protocol.ts"
import { filesOf } from "./Protocol.ts"
import { textAt } from "./VendorRequest.ts"
import type { VendorRequest } from "./VendorRequest.ts"

type Jobs = NonNullable<Vendor["jobs"]>

const escaped = (text: string): string => text.replaceAll(/[.*+?^$()|[\]\\]/gu, "\\$&")

/** A pattern for the paths of a template. `{model}` may stand for several segments. */
const patternOf = (path: string): RegExp => {
  const [start = ""] = path.split("?")
  const source = start
    .split(/(\{\w+(?::\d)?\})/u)
    .map((part) => {
      if (/^\{model\b/u.test(part)) return "(?<model>.+?)"
      return part.startsWith("{") ? `(?<${part.slice(1, -1)}>[^/]+)` : escaped(part)
    })
    .join("")
  return new RegExp(`^${source}$`, "u")
}

/** A pattern for a URL. `{statusUrl}` alone is a URL that `playHandle` created. */
const namedPattern = (path: string): RegExp =>
  path.startsWith("{")
    ? new RegExp(`^/jobs/(?<id>[^/]+)/${path.slice(1, -1)}$`, "u")
    : patternOf(path)

interface SubmitRoute {
  readonly pattern: RegExp
  /** The vendor's id of the model. */
  readonly model: string
  readonly kind: MadeKind
  /** The results of a call without a job. */
  readonly results: OwnResults | undefined
}

interface Routes {
  readonly submits: ReadonlyArray<SubmitRoute>
  readonly uploads: RegExp | undefined
  readonly poll: RegExp | undefined
  readonly results: RegExp | undefined
  readonly content: RegExp | undefined
  readonly cancel: { readonly method: string; readonly pattern: RegExp } | undefined
}

const kinds = {
  images: "image",
  videos: "video",
  audios: "audio",
  meshes: "mesh",
  documents: "document"
} as const

const namedOrNone = (path: string | undefined) =>
  path === undefined ? undefined : namedPattern(path)

/** The path of the form of a model's id. */
const formPath = (submit: Jobs["submit"], { model, upstreamModel = model }: JobModel) => {
  const form = formOf(submit, upstreamModel)
  return form === undefined
    ? undefined
    : urlOf("", form.path, { ...form.named, model: upstreamModel })
}

const routesOf = ({ cancel, models, poll, results, submit }: Jobs): Routes => ({
  submits: models.map((model) => ({
    pattern: patternOf(model.submit?.path ?? formPath(submit, model) ?? submit.path ?? ""),
    model: model.upstreamModel ?? model.model,
    kind: kinds[model.result],
    results: model.submit?.results ?? submit.results
  })),
  uploads: namedOrNone(submit.uploads?.path),
  poll: namedOrNone(poll?.path),
  results: namedOrNone(results?.path),
  content: namedOrNone(results?.content),
  cancel:
    cancel === undefined ? undefined : { method: cancel.method, pattern: namedPattern(cancel.path) }
})

const isSigned = (token: string, key: string): boolean => {
  const [head = "", claims = "", signature = ""] = token.split(".")
  const secret = key.slice(key.indexOf(":") + 1)
  const expected = createHmac("sha256", secret).update(`${head}.${claims}`).digest("base64url")
  return signature === expected
}

const hasKey = (auth: JobAuth, { headers, query }: VendorRequest, key: string): boolean => {
  if (auth.scheme === "query") return query.get(auth.name) === key
  if (auth.scheme === "jwt") {
    return isSigned(String(headers.authorization).replace(/^Bearer /u, ""), key)
  }
  return Object.entries(credentialOf(auth, key, 0).headers).every(
    ([name, value]) => headers[name] === value
  )
}

const replyOf = ({ json, status }: Played): Reply => ({ status, json })

const jobFailuresOf = ({ failures }: JobProtocol): ReadonlySet<VendorErrorClass> =>
  new Set([
    "FAILED",
    "LOST",
    ...failures.flatMap((rule): ReadonlyArray<VendorErrorClass> =>
      rule.status === undefined && rule.when === undefined ? [rule.class] : []
    )
  ])

const madeOf = (files: ReadonlyArray<MadeFile>): PlayedResults => ({
  urls: files.map(({ url }) => url),
  encoded: () => files.map(({ bytes }) => Buffer.from(bytes).toString("base64")),
  documents: () => files.map((_, index) => ({ played: index }))
})

const shown = (
  jobs: Jobs,
  polled: Polled,
  vendor: PlayedVendor,
  job: Job,
  isResults: boolean
): Reply => {
  if (vendor.isRunning(job)) return replyOf(playRunning(polled, 100 - 100 / (job.polls + 1)))
  const ending = vendor.endingOf(job, submitOf(jobs, job)?.kind ?? "image")
  if (job.isCancelled) return replyOf(playFailed(jobs, polled, "FAILED", "The job was cancelled"))
  if (ending._tag === "Failed") {
    return replyOf(playFailed(jobs, polled, ending.kind, ending.message ?? "The job failed"))
  }
  // If the results need a second request, the poll returns only the state
  const hasFiles = isResults || polled.results.path === undefined
  return replyOf(playDone(polled, madeOf(hasFiles ? filesOf(ending) : [])))
}

/** The submit route for the model that the request names, if it names one. */
const submitOf = (jobs: Jobs, { model, path }: Job): SubmitRoute | undefined => {
  const there = routesOf(jobs).submits.filter(({ pattern }) => pattern.test(path))
  return there.find((route) => route.model === model) ?? there[0]
}

/** The results of a call without a job. */
const atOnce = (jobs: Jobs, results: OwnResults, vendor: PlayedVendor, job: Job): Reply => {
  const ending = vendor.endingOf(job, submitOf(jobs, job)?.kind ?? "image")
  if (ending._tag === "Failed") {
    const message = ending.message ?? "The call failed"
    return replyOf(playRefusal(jobs, ending.kind, message) ?? { status: 500, json: {} })
  }
  const [file] = ending.files
  if (results.whole === true && file !== undefined) return { status: 200, file }
  return { status: 200, json: playResults(results, madeOf(ending.files)) }
}

/** How many results a submitted body orders. The template of the body is not available here. */
const countIn = ({ models }: Jobs, body: unknown): number =>
  models.map(({ count }) => countOf(count, body)).find((count) => count !== undefined) ?? 1

/** A vendor that behaves as its description says, for tests and for its official clients. docs/vendors-as-files.md */
export const describedProtocol = ({ jobs }: Vendor): Protocol => {
  if (jobs === undefined) throw new Error("the entry has no jobs")
  const { auth = { scheme: "bearer" as const }, submit } = jobs
  const routes = routesOf(jobs)
  const polled = polledOf(jobs)
  const method = submit.method ?? "POST"
  const isSubmit = (request: VendorRequest) =>
    request.method === method && routes.submits.some(({ pattern }) => pattern.test(request.path))
  const idIn = (pattern: RegExp | undefined, { path }: VendorRequest) =>
    pattern?.exec(path)?.groups?.["id"]
  return {
    key: "described-test-key:secret-0001",
    isSubmit,
    modelOf: (request) =>
      routes.submits
        .map(({ pattern }) => pattern.exec(request.path)?.groups?.["model"])
        .find((model) => model !== undefined) ??
      textAt(request.json, "model") ??
      "",
    stranger: (request, key) =>
      hasKey(auth, request, key)
        ? undefined
        : replyOf(
            playRefusal(jobs, "OPERATOR", "The key is not valid") ?? { status: 401, json: {} }
          ),
    refusal: (kind, message) => {
      const played = playRefusal(jobs, kind, message ?? "Refused")
      return played === undefined ? undefined : replyOf(played)
    },
    jobFailures: jobFailuresOf(jobs),
    respond: (request, vendor) => {
      if (isSubmit(request)) {
        const job = vendor.buy(request, { count: countIn(jobs, request.json) })
        const own = submitOf(jobs, job)?.results
        if (own !== undefined) {
          return vendor.ended(job).then(() => atOnce(jobs, own, vendor, job))
        }
        return polled && replyOf(playHandle(polled, job.id, vendor.url))
      }
      if (submit.uploads !== undefined && routes.uploads?.test(request.path) === true) {
        return replyOf(playUpload(submit.uploads, vendor.url))
      }
      const withContent = vendor.jobs.get(idIn(routes.content, request) ?? "")
      if (request.method === "GET" && withContent !== undefined) {
        const kind = submitOf(jobs, withContent)?.kind ?? "image"
        const [file] = filesOf(vendor.endingOf(withContent, kind))
        return file === undefined ? replyOf(playUnknown(jobs)) : { status: 200, file }
      }
      const { cancel } = routes
      const cancelled = cancel?.method === request.method && idIn(cancel.pattern, request)
      if (typeof cancelled === "string") {
        const job = vendor.jobs.get(cancelled)
        if (job === undefined) return replyOf(playUnknown(jobs))
        if (vendor.isRunning(job)) job.isCancelled = true
        return { status: 200, json: {} }
      }
      const named = idIn(routes.poll, request)
      const asked = named ?? idIn(routes.results, request)
      if (request.method !== "GET" || asked === undefined || !polled) return undefined
      const job = vendor.poll(asked)
      return job === undefined
        ? replyOf(playUnknown(jobs))
        : shown(jobs, polled, vendor, job, named === undefined)
    }
  }
}
