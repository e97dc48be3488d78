import { Duration, Effect, Stream } from "effect"
import type { Option, Scope } from "effect"
import { Agent } from "undici"
import type { Dispatcher } from "undici"
import type { AccountSetting } from "../domain/Provider.ts"
import { isSameOrigin } from "./Bases.ts"
import type { Download, UrlItem } from "./VendorClient.ts"
import { VendorError } from "./VendorError.ts"

/** No answer, or no further piece of it, for so long. The whole may take until the task's deadline. */
const silenceMax = Duration.seconds(30)

const broken = (why: string) =>
  new VendorError({ class: "RETRYABLE", message: `its download broke off, ${why}` })

const silent = broken(`nothing came for ${Duration.toSeconds(silenceMax)} seconds`)

/** What an answer to a download that is not the medium means. */
const refused = (status: number): VendorError =>
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
 * Fetches what lies at an account's own origin, in pieces as they come; the key goes there and nowhere
 * else. No redirect is followed.
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
    const { body, headers: told, statusCode } = yield* get(agent, new URL(item.url), headers)
    if (statusCode !== 200) return yield* refused(statusCode)
    const announced = Number([told["content-length"]].flat()[0] ?? Number.NaN)
    const stream = Stream.fromAsyncIterable<Uint8Array, VendorError>(body, (cause) =>
      broken(cause instanceof Error ? cause.message : "the connection closed")
    ).pipe(Stream.timeoutOrElse({ duration: silenceMax, orElse: () => Stream.fail(silent) }))
    return yield* Effect.succeedSome({
      mime: item.mime,
      stream,
      ...(Number.isSafeInteger(announced) ? { announced } : {})
    })
  })
  return (account, auth) => (item) =>
    isSameOrigin(account.baseUrl, item.url)
      ? open(item, item.needsAuth ? auth : {})
      : Effect.succeedNone
})

/** The answer with its body still to be read; let go when the scope closes. */
const get = (agent: Agent, url: URL, headers: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async (signal) => {
        const answer = await agent.request({
          origin: url.origin,
          path: `${url.pathname}${url.search}`,
          method: "GET",
          headers: { ...headers },
          signal
        })
        // Who reads the body hears of its errors; one that comes when nobody does is nobody's concern
        answer.body.on("error", () => {})
        return answer
      },
      catch: (cause) => broken(cause instanceof Error ? cause.message : "no answer")
    }).pipe(Effect.timeoutOrElse({ duration: silenceMax, orElse: () => Effect.fail(silent) })),
    letGo,
    { interruptible: true }
  )

const letGo = ({ body }: Dispatcher.ResponseData) =>
  Effect.sync(() => {
    body.destroy()
  })
