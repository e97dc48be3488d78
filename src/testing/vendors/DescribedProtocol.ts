import { createHmac } from "node:crypto"
import type { JobAuth, JobProtocol } from "../../catalog/jobs/JobProtocol.ts"
import { countOf } from "../../catalog/Price.ts"
import type { Vendor } from "../../catalog/Vendors.ts"
import { credentialOf } from "../../vendors/described/JobAuth.ts"
import {
  playDone,
  playFailed,
  playHandle,
  playRefusal,
  playRunning,
  playUnknown
} from "../../vendors/described/JobPlayer.ts"
import type { Played } from "../../vendors/described/JobPlayer.ts"
import type { VendorErrorClass } from "../../vendors/VendorError.ts"
import type { Job, Protocol, Reply, Vendor as PlayedVendor } from "./Protocol.ts"
import { filesOf } from "./Protocol.ts"
import { textAt } from "./VendorRequest.ts"
import type { VendorRequest } from "./VendorRequest.ts"

type Jobs = NonNullable<Vendor["jobs"]>

const escaped = (text: string): string => text.replaceAll(/[.*+?^$()|[\]\\]/gu, "\\$&")

/** Matches the paths of a template; `{model}` may have several segments. */
const patternOf = (path: string): RegExp => {
  const [start = ""] = path.split("?")
  const source = start
    .split(/(\{\w+\})/u)
    .map((part) => {
      if (part === "{model}") return "(?<model>.+?)"
      return part.startsWith("{") ? `(?<${part.slice(1, -1)}>[^/]+)` : escaped(part)
    })
    .join("")
  return new RegExp(`^${source}$`, "u")
}

/** `{statusUrl}` alone is a URL that `playHandle` has made. */
const namedPattern = (path: string): RegExp =>
  path.startsWith("{")
    ? new RegExp(`^/jobs/(?<id>[^/]+)/${path.slice(1, -1)}$`, "u")
    : patternOf(path)

interface Routes {
  readonly submits: ReadonlyArray<{ readonly pattern: RegExp; readonly isVideo: boolean }>
  readonly poll: RegExp
  readonly results: RegExp | undefined
  readonly cancel: { readonly method: string; readonly pattern: RegExp } | undefined
}

const routesOf = ({ cancel, models, poll, results, submit }: Jobs): Routes => ({
  submits: models.map((model) => ({
    pattern: patternOf(model.submit?.path ?? submit.path ?? ""),
    isVideo: model.result === "videos"
  })),
  poll: namedPattern(poll.path),
  results: results.path === undefined ? undefined : namedPattern(results.path),
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

const shown = (jobs: Jobs, vendor: PlayedVendor, job: Job, isResults: boolean): Reply => {
  if (vendor.isRunning(job)) return replyOf(playRunning(jobs))
  const ending = vendor.endingOf(job, isVideoJob(jobs, job) ? "video" : "image")
  if (job.isCancelled) return replyOf(playFailed(jobs, "FAILED", "The job was cancelled"))
  if (ending._tag === "Failed") {
    return replyOf(playFailed(jobs, ending.kind, ending.message ?? "The job failed"))
  }
  const files = filesOf(ending)
  // With a second request the poll has the state alone
  const urls = isResults || jobs.results.path === undefined ? files.map(({ url }) => url) : []
  return replyOf(
    playDone(jobs, urls, () => files.map(({ bytes }) => Buffer.from(bytes).toString("base64")))
  )
}

const isVideoJob = (jobs: Jobs, { path }: Job): boolean =>
  routesOf(jobs).submits.find(({ pattern }) => pattern.test(path))?.isVideo === true

/** How many results the body of a job orders: the described body is not known here, the sent one is. */
const countIn = ({ models }: Jobs, body: unknown): number =>
  models.map(({ count }) => countOf(count, body)).find((count) => count !== undefined) ?? 1

/** A vendor as its description has it, for tests and for its official clients. docs/vendors-as-files.md */
export const describedProtocol = ({ jobs }: Vendor): Protocol => {
  if (jobs === undefined) throw new Error("the entry has no jobs")
  const { auth = { scheme: "bearer" as const }, submit } = jobs
  const routes = routesOf(jobs)
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
        return replyOf(playHandle(jobs, job.id, vendor.url))
      }
      const { cancel } = routes
      const cancelled = cancel?.method === request.method && idIn(cancel.pattern, request)
      if (typeof cancelled === "string") {
        const job = vendor.jobs.get(cancelled)
        if (job === undefined) return replyOf(playUnknown(jobs))
        if (vendor.isRunning(job)) job.isCancelled = true
        return { status: 200, json: {} }
      }
      const polled = idIn(routes.poll, request)
      const asked = polled ?? idIn(routes.results, request)
      if (request.method !== "GET" || asked === undefined) return undefined
      const job = vendor.poll(asked)
      return job === undefined
        ? replyOf(playUnknown(jobs))
        : shown(jobs, vendor, job, polled === undefined)
    }
  }
}
