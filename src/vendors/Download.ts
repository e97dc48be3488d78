import { Duration, Effect } from "effect"
import type { Option, Scope } from "effect"
import { Agent } from "undici"
import type { Dispatcher } from "undici"
import { bodyStream } from "../domain/BodyStream.ts"
import type { AccountSetting } from "../domain/Provider.ts"
import { isSameOrigin } from "./BaseUrl.ts"
import type { Download, UrlItem } from "./VendorClient.ts"
import { VendorError } from "./VendorError.ts"

/** The longest silence, before the response and within it. The whole download may last until the task's deadline. */
const silenceMax = Duration.seconds(30)

const interrupted = (why: string) =>
  new VendorError({ class: "RETRYABLE", message: `its download broke off: ${why}` })

const silent = interrupted(`no data for ${Duration.toSeconds(silenceMax)} seconds`)

/** The error of a response without the medium. */
const statusError = (status: number): VendorError =>
  new VendorError({
    class: status === 429 || status >= 500 ? "RETRYABLE" : "LOST",
    message: `The result could not be downloaded: HTTP ${status}`,
    httpStatus: status
  })

export type Downloads = (
  account: AccountSetting,
  auth: Readonly<Record<string, string>>
) => (item: UrlItem) => Effect.Effect<Option.Option<Download>, VendorError, Scope.Scope>

/**
 * Streams results from the account's own origin and sends the key there only. Results at other origins, and at bases
 * that a catalog file names, go through the egress guard without the key. Redirects are not followed.
 */
export const make: Effect.Effect<Downloads, never, Scope.Scope> = Effect.gen(function* () {
  const agent = yield* Effect.acquireRelease(
    Effect.sync(
      () => new Agent({ headersTimeout: 0, bodyTimeout: 0, allowH2: false, connections: 32 })
    ),
    (it) => Effect.promise(() => it.destroy())
  )
  const open = Effect.fnUntraced(function* (
    item: UrlItem,
    headers: Readonly<Record<string, string>>
  ): Effect.fn.Return<Option.Option<Download>, VendorError, Scope.Scope> {
    const { body, headers: received, statusCode } = yield* get(agent, new URL(item.url), headers)
    if (statusCode !== 200) return yield* statusError(statusCode)
    const announced = Number([received["content-length"]].flat()[0] ?? Number.NaN)
    const stream = bodyStream(body, {
      silenceMax,
      onSilence: () => silent,
      onBroken: (cause) =>
        interrupted(cause instanceof Error ? cause.message : "the connection closed")
    })
    return yield* Effect.succeedSome({
      mime: item.mime,
      stream,
      ...(Number.isSafeInteger(announced) ? { announced } : {})
    })
  })
  return (account, auth) => (item) =>
    isSameOrigin(account.baseUrl, item.url) && account.guarded !== true
      ? open(item, item.needsAuth ? auth : {})
      : Effect.succeedNone
})

/** The response with an unread body, discarded when the scope closes. */
const get = (agent: Agent, url: URL, headers: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async (signal) => {
        const response = await agent.request({
          origin: url.origin,
          path: `${url.pathname}${url.search}`,
          method: "GET",
          headers: { ...headers },
          signal
        })
        // A reader of the body receives its errors; without a reader they are ignored
        response.body.on("error", () => {})
        return response
      },
      catch: (cause) => interrupted(cause instanceof Error ? cause.message : "no response")
    }).pipe(Effect.timeoutOrElse({ duration: silenceMax, orElse: () => Effect.fail(silent) })),
    discard,
    { interruptible: true }
  )

const discard = ({ body }: Dispatcher.ResponseData) =>
  Effect.sync(() => {
    body.destroy()
  })
