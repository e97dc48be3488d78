import { Effect, Predicate } from "effect"
import { polledOf } from "../../catalog/jobs/JobProtocol.ts"
import type { JobProtocol } from "../../catalog/jobs/JobProtocol.ts"
import { first, listAt, textAt } from "../../catalog/jobs/JsonPath.ts"
import { isSameOrigin } from "../BaseUrl.ts"
import { jsonIn, unreadableError } from "../Faults.ts"
import { plainInput } from "../FlatInput.ts"
import { longList, promptIn } from "../JobList.ts"
import type { Likeness, ListedJob, ListQuery, SubmitRequest } from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"
import { isOk } from "../VendorHttp.ts"
import { isShown, plainScope, sentIn } from "./JobBody.ts"
import { queryFailure } from "./JobFailures.ts"
import { membersOf, valuesIn } from "./JobHandle.ts"
import type { JobSend } from "./JobRequests.ts"
import { urlOf, withParameter } from "./JobUrl.ts"

type List = NonNullable<JobProtocol["list"]>

/** The most pages that are read, newest first. */
const pagesMax = 20

/** A smaller Unix time is in seconds, because in milliseconds it would be a date in 1973 or earlier. */
const secondsMax = 100_000_000_000

/** A job without a time is older than every other. */
const millisOf = (text = "0"): number => {
  const number = Number(text)
  if (Number.isNaN(number)) return Date.parse(text)
  return number < secondsMax ? number * 1000 : number
}

/** A list may have times in whole seconds. */
const graceMillis = 1000

/** Compares the members that both objects have. The objects are the same if their prompts are equal. */
const isSame = (shown: unknown, sent: unknown, prompt: string | undefined): boolean | undefined => {
  if (!Predicate.isObject(shown) || !Predicate.isObject(sent)) return isShown(shown, sent)
  const compared = Object.entries(sent).map(([name, value]) => {
    const same = Object.hasOwn(shown, name) ? isSame(shown[name], value, prompt) : undefined
    return same === true && !Predicate.isObject(value) && value !== prompt ? undefined : same
  })
  const found = new Set(compared)
  return found.has(false) ? false : found.has(true) || undefined
}

/** What a request sent, in the order of the pairs of the list. */
interface Sent {
  readonly model: ReadonlyArray<unknown>
  readonly shows: ReadonlyArray<unknown>
  readonly prompt: string | undefined
}

const sentBy = (
  protocol: JobProtocol,
  { model = [], shows }: List,
  request: SubmitRequest
): Sent => {
  const scope = { ...plainScope(protocol, request), input: plainInput(request) }
  return {
    model: model.map(({ sent }) => sentIn(sent, scope)),
    shows: shows.map(({ sent }) => sentIn(sent, scope)),
    prompt: promptIn(request)
  }
}

const likeness = ({ model = [], shows }: List, sent: Sent, job: unknown): Likeness => {
  const isOther = model.some(({ exact = false, listed }, index) => {
    const [shown, own] = [first(listed, job) ?? undefined, sent.model[index]]
    return exact && (shown === undefined) !== (own === undefined)
      ? true
      : isShown(shown, own) === false
  })
  if (isOther) return "other"
  const compared = new Set(
    shows.map(({ listed }, index) => isSame(first(listed, job), sent.shows[index], sent.prompt))
  )
  if (compared.has(false)) return "other"
  return compared.has(true) ? "same" : "open"
}

/** The jobs that the vendor lists, newest first. ADR 0194 */
export const makeList = (protocol: JobProtocol, list: List, base: string, send: JobSend) =>
  Effect.fn("DescribedJobs.list")(function* ({
    from,
    until
  }: ListQuery): Effect.fn.Return<ReadonlyArray<ListedJob>, VendorError> {
    const polled = polledOf(protocol)
    const found: Array<ListedJob> = []
    // Computed once, because a request is compared with each job
    const known = new Map<SubmitRequest, Sent>()
    const sentOf = (request: SubmitRequest): Sent => {
      const sent = known.get(request) ?? sentBy(protocol, list, request)
      known.set(request, sent)
      return sent
    }
    const start = urlOf(base, list.path, {}) ?? `${base}${list.path}`
    let url = start
    for (let page = 1; page <= pagesMax; page += 1) {
      const response = yield* send({ purpose: "query", url })
      if (!isOk(response)) return yield* queryFailure(protocol, response)
      const json = jsonIn(response)
      const listed = listAt(list.jobs, json)
      if (listed === undefined) return yield* unreadableError("query", response)
      const jobs = listed.flatMap((job) => {
        const jobId = textAt([list.id], job)
        const at = millisOf(textAt([list.createdAt], job))
        return jobId === undefined || Number.isNaN(at) ? [] : [{ at, job, jobId }]
      })
      for (const { at, job, jobId } of jobs) {
        if (at < from - graceMillis || at > until) continue
        const callbackUrl = list.callback === undefined ? undefined : textAt([list.callback], job)
        found.push({
          jobId,
          ...(callbackUrl === undefined ? {} : { callbackUrl }),
          createdAtMillis: at,
          compare: (request) => likeness(list, sentOf(request), job),
          handle: (request) => ({
            ...(polled && valuesIn(polled, base, { id: jobId, model: request.upstreamModel }, {})),
            ...membersOf(request, at)
          })
        })
      }
      const last = jobs.at(-1)
      if (list.next === undefined || last === undefined || last.at < from - graceMillis)
        return found
      const { at, more, parameter } = list.next
      if (more !== undefined && first(more, json) !== true) return found
      const cursor = at === undefined ? last.jobId : textAt([at], json)
      if (cursor === undefined) return more === undefined ? found : yield* longList
      url = parameter === undefined ? cursor : withParameter(start, parameter, cursor)
      // The key is sent only to the account's own origin
      if (!isSameOrigin(base, url)) return yield* longList
    }
    return yield* longList
  })
