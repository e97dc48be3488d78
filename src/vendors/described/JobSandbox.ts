import { Effect, Option, Result, Schema } from "effect"
import type { JobProtocol } from "../../catalog/jobs/JobProtocol.ts"
import { countOf } from "../../catalog/Price.ts"
import type { Adapter } from "../Adapter.ts"
import type { AdapterContext } from "../AdapterContext.ts"
import { base64 } from "../MediaTexts.ts"
import { Handle } from "../VendorClient.ts"
import type { Progress, SubmitRequest, VendorAccount } from "../VendorClient.ts"
import { VendorError } from "../VendorError.ts"
import type { VendorHttp, VendorResponse } from "../VendorHttp.ts"
import {
  playDone,
  playFailed,
  playHandle,
  playRefusal,
  playRunning,
  playUnknown
} from "./JobPlayer.ts"
import type { Played } from "./JobPlayer.ts"

/** Where a played vendor would be. */
const base = "https://sandbox.invalid"

const responseOf = ({ json, status }: Played): VendorResponse => ({
  status,
  headers: { "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(json))
})

const always =
  (played: Played): VendorHttp =>
  () =>
    Effect.succeed(responseOf(played))

/** The id of a played job is the simulator's handle: polls work after a restart of the process. */
const idOf = (handle: Handle): string => Buffer.from(JSON.stringify(handle)).toString("base64url")

const decodeId = Schema.decodeUnknownOption(Schema.fromJsonString(Handle))

const simulatedIn = (handle: Handle): Option.Option<Handle> =>
  decodeId(Buffer.from(String(handle["id"] ?? ""), "base64url").toString())

const lost = new VendorError({
  class: "LOST",
  message: "The handle was not made by this simulator"
})

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

const whole = (value: unknown): number | undefined =>
  typeof value === "number" ? Math.round(value) : undefined

const pixels = /^\d{2,4}[:x*]\d{2,4}$/u

/** What the simulator renders of a described body, whose fields may have any names and types. */
const renderedBody = ({ body, described }: SubmitRequest) => {
  const fields: Record<string, unknown> = { ...Object(body) }
  const sizes = [fields["size"], fields["ratio"], fields["resolution"]].map(text)
  const size = sizes.find((it) => it !== undefined && pixels.test(it))?.replace(/[:x]/u, "*")
  const all = {
    prompt: text(fields["prompt"]) ?? text(fields["text"]),
    size,
    n: countOf(described?.count, body) ?? 1,
    duration: whole(fields["duration"]),
    seed: whole(fields["seed"])
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

/**
 * The account of a described vendor without a key: the simulator decides what becomes of a job and renders it, and the
 * vendor's own description carries every request and response between, so that it is tried without a key.
 * docs/vendors-as-files.md#try-it-without-a-key
 */
export const sandboxAccount = (
  adapter: Adapter,
  protocol: JobProtocol,
  simulator: VendorAccount,
  context: Omit<AdapterContext, "http">
): VendorAccount => {
  const account = { ...context.account, baseUrl: base }
  const playing = (http: VendorHttp) => adapter.make({ ...context, account, http })

  const submit: VendorAccount["submit"] = Effect.fn("JobSandbox.submit")(function* (request) {
    const simulated = yield* Effect.result(
      simulator.submit({ ...request, body: renderedBody(request) })
    )
    if (Result.isSuccess(simulated)) {
      const made = simulated.success
      if (made._tag === "Done") return made
      const handle = playHandle(protocol, idOf(made.handle), base)
      const submitted = yield* playing(always(handle)).submit(request)
      return { ...submitted, pollAfter: made.pollAfter }
    }
    const { class: kind, message } = simulated.failure
    const refusal = playRefusal(protocol, kind, message)
    if (refusal === undefined) return yield* simulated.failure
    return yield* playing(always(refusal)).submit(request)
  })

  const poll: VendorAccount["poll"] = Effect.fn("JobSandbox.poll")(function* (handle) {
    const job = simulatedIn(handle)
    if (Option.isNone(job)) return yield* lost
    const simulated = yield* Effect.result(simulator.poll(job.value))
    if (Result.isFailure(simulated)) {
      const { class: kind, message } = simulated.failure
      const ended = kind === "LOST" ? playUnknown(protocol) : playFailed(protocol, kind, message)
      return yield* playing(always(ended)).poll(handle)
    }
    const progress = simulated.success
    if (progress._tag === "Running") {
      yield* playing(always(playRunning(protocol))).poll(handle)
      return progress
    }
    const { items } = progress.result
    const urls = items.map((_, index) => `${base}/results/${index}`)
    const encoded = () => items.map((item) => (item._tag === "Bytes" ? base64(item.bytes) : ""))
    const done = yield* playing(always(playDone(protocol, urls, encoded))).poll(handle)
    return withItems(done, items)
  })

  return {
    accountId: context.accountId,
    isSimulated: true,
    submit,
    poll,
    cancel: (handle) =>
      Option.match(simulatedIn(handle), {
        onNone: () => Effect.fail(lost),
        onSome: (job) =>
          protocol.cancel === undefined
            ? Effect.succeed("Unsupported" as const)
            : simulator.cancel(job)
      })
  }
}

/** The media that the simulator rendered replace the URLs that the description found. */
const withItems = (
  progress: Progress,
  items: Extract<Progress, { readonly _tag: "Done" }>["result"]["items"]
): Progress =>
  progress._tag === "Done"
    ? {
        _tag: "Done",
        result: { ...progress.result, items: items.slice(0, progress.result.items.length) }
      }
    : progress
