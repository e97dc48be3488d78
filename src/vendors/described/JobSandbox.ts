import { Effect, Option, Result, Schema } from "effect"
import { polledOf } from "../../catalog/jobs/JobProtocol.ts"
import type { JobProtocol } from "../../catalog/jobs/JobProtocol.ts"
import type { Adapter } from "../Adapter.ts"
import type { AdapterContext } from "../AdapterContext.ts"
import { base64 } from "../MediaTexts.ts"
import { Handle } from "../VendorClient.ts"
import type { Progress, ResultItem, SubmitRequest, VendorAccount } from "../VendorClient.ts"
import { VendorError } from "../VendorError.ts"
import type { VendorHttp, VendorResponse } from "../VendorHttp.ts"
import {
  playDone,
  playFailed,
  playFigures,
  playHandle,
  playRefusal,
  playResults,
  playRunning,
  playUnknown,
  playUpload
} from "./JobPlayer.ts"
import type { Played, PlayedResults } from "./JobPlayer.ts"
import { urlOf } from "./JobUrl.ts"

/** The base URL of simulated vendors. */
const base = "https://sandbox.invalid"

const responseOf = ({ json, status }: Played): VendorResponse => ({
  status,
  headers: { "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(json))
})

const madeOf = (items: ReadonlyArray<ResultItem>): PlayedResults => {
  const bytes = items.map((item) => (item._tag === "Bytes" ? item.bytes : new Uint8Array()))
  return {
    urls: items.map((_, index) => `${base}/results/${index}`),
    encoded: () => bytes.map(base64),
    documents: () => bytes.map((it) => ({ bytes: it.length }))
  }
}

/** Stands in for results that are not rendered yet. */
const sample: ReadonlyArray<ResultItem> = [
  { _tag: "Bytes", bytes: new Uint8Array(1), mime: "application/octet-stream" }
]

/** The id of a simulated job encodes the simulator's handle, so polls work after the process restarts. */
const idOf = (handle: Handle): string => Buffer.from(JSON.stringify(handle)).toString("base64url")

/** The handle member of a call without a job: the simulator's handle as JSON. */
const simulatedMember = "simulated"

const directIn = (handle: Handle): Option.Option<Handle> =>
  decodeId(String(handle[simulatedMember] ?? ""))

const decodeId = Schema.decodeUnknownOption(Schema.fromJsonString(Handle))

const simulatedIn = (handle: Handle): Option.Option<Handle> =>
  decodeId(Buffer.from(String(handle["id"] ?? ""), "base64url").toString())

const lost = new VendorError({
  class: "LOST",
  message: "The handle was not made by this simulator"
})

/**
 * The account of a described vendor without a key, so that a description can be tried without one. The simulator
 * decides the outcome of a job and renders its results; every request and response in between is built and read by the
 * vendor's own description. docs/vendors-as-files.md#try-it-without-a-key
 */
export const sandboxAccount = (
  adapter: Adapter,
  protocol: JobProtocol,
  simulator: VendorAccount,
  context: Omit<AdapterContext, "http">
): VendorAccount => {
  const account = { ...context.account, baseUrl: base }
  const playing = (http: VendorHttp) => adapter.make({ ...context, account, http })
  const { uploads } = protocol.submit
  const uploadUrl = uploads === undefined ? undefined : urlOf(base, uploads.path, {})

  const always =
    (played: Played): VendorHttp =>
    ({ url }) =>
      Effect.succeed(
        responseOf(uploads !== undefined && url === uploadUrl ? playUpload(uploads, base) : played)
      )

  const polled = polledOf(protocol)

  /**
   * Runs a call that returns its results at once through the description too. The simulator renders the real results
   * later, so that a create never waits for them.
   */
  const atOnce = Effect.fnUntraced(function* (request: SubmitRequest, made: Handle) {
    const own = request.described?.submit?.results ?? protocol.submit.results
    if (own === undefined) return undefined
    yield* playing(always({ status: 200, json: playResults(own, madeOf(sample)) })).submit(request)
    return { [simulatedMember]: JSON.stringify(made) }
  })

  const submit: VendorAccount["submit"] = Effect.fn("JobSandbox.submit")(function* (request) {
    const simulated = yield* Effect.result(simulator.submit(request))
    if (Result.isSuccess(simulated)) {
      const made = simulated.success
      if (made._tag === "Done") return made
      const handle = yield* atOnce(request, made.handle)
      if (handle !== undefined) return { ...made, handle }
      if (polled === undefined) return yield* lost
      const response = playHandle(polled, idOf(made.handle), base)
      const submitted = yield* playing(always(response)).submit(request)
      return { ...submitted, pollAfter: made.pollAfter }
    }
    const { class: kind, message } = simulated.failure
    const refusal = playRefusal(protocol, kind, message)
    if (refusal === undefined) return yield* simulated.failure
    return yield* playing(always(refusal)).submit(request)
  })

  const poll: VendorAccount["poll"] = Effect.fn("JobSandbox.poll")(function* (handle) {
    const own = directIn(handle)
    if (Option.isSome(own)) return withFigures(protocol, yield* simulator.poll(own.value))
    const job = simulatedIn(handle)
    if (Option.isNone(job) || polled === undefined) return yield* lost
    const simulated = yield* Effect.result(simulator.poll(job.value))
    if (Result.isFailure(simulated)) {
      const { class: kind, message } = simulated.failure
      const ended =
        kind === "LOST" ? playUnknown(protocol) : playFailed(protocol, polled, kind, message)
      return yield* playing(always(ended)).poll(handle)
    }
    const progress = simulated.success
    if (progress._tag === "Running") {
      const { pollAfter, rendered = 0 } = progress
      const shown = yield* playing(always(playRunning(polled, rendered))).poll(handle)
      return shown._tag === "Running" ? { ...shown, pollAfter } : shown
    }
    const { items, rendered } = progress.result
    const played = playDone(polled, madeOf(items), protocol.usage, rendered)
    const done = yield* playing(always(played)).poll(handle)
    return withItems(done, items)
  })

  return {
    accountId: context.accountId,
    isSimulated: true,
    showsProgress: polled?.progress !== undefined,
    submit,
    poll,
    cancel: (handle) => {
      if (Option.isSome(directIn(handle)) || protocol.cancel === undefined) {
        return Effect.succeed("Unsupported")
      }
      return Option.match(simulatedIn(handle), {
        onNone: () => Effect.fail(lost),
        onSome: simulator.cancel
      })
    }
  }
}

/** Replaces the URLs that the description found with the media that the simulator rendered. */
const withItems = (progress: Progress, items: ReadonlyArray<ResultItem>): Progress =>
  progress._tag === "Done"
    ? {
        _tag: "Done",
        result: { ...progress.result, items: items.slice(0, progress.result.items.length) }
      }
    : progress

/** Adds the figures that the simulator measured. */
const withFigures = ({ usage = {} }: JobProtocol, progress: Progress): Progress =>
  progress._tag === "Done"
    ? {
        _tag: "Done",
        result: {
          ...progress.result,
          usage: playFigures(usage, progress.result.rendered ?? {})
        }
      }
    : progress
