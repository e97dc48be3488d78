import { Duration, Effect } from "effect"
import type { Option } from "effect"
import { isSameOrigin } from "./Bases.ts"
import { unanswered } from "./Faults.ts"
import type { Line } from "./Line.ts"
import { VendorError } from "./VendorClient.ts"
import type { Downloaded, UrlItem } from "./VendorClient.ts"

const downloadTimeout = Duration.minutes(5)

/** What an answer to a download that is not the medium means. */
export const downloadFailed = (status: number): VendorError =>
  new VendorError({
    class: status === 429 || status >= 500 ? "RETRYABLE" : "LOST",
    message: `The result could not be downloaded: HTTP ${status}`,
    httpStatus: status
  })

/** Fetches what lies at the account's own origin; the key goes there and nowhere else. */
export const makeDownload =
  ({ account, http }: Line, auth: Readonly<Record<string, string>>) =>
  (item: UrlItem, bytesMax: number): Effect.Effect<Option.Option<Downloaded>, VendorError> =>
    isSameOrigin(account.baseUrl, item.url)
      ? http({
          method: "GET",
          url: item.url,
          headers: item.needsAuth ? auth : {},
          timeout: downloadTimeout,
          bytesMax
        }).pipe(
          Effect.mapError((failure) => unanswered("ask", failure)),
          Effect.flatMap((answer) =>
            answer.status === 200
              ? Effect.succeedSome({ bytes: answer.body, mime: item.mime })
              : Effect.fail(downloadFailed(answer.status))
          )
        )
      : Effect.succeedNone
