import { Effect, Option } from "effect"
import { webhookUrlCharactersMax } from "../domain/limits/Limits.ts"
import { Problem } from "../domain/Problem.ts"
import type { FieldFault } from "../domain/Problem.ts"
import { EgressGuard } from "../egress/EgressGuard.ts"
import type { EgressRefused } from "../egress/EgressRules.ts"

/** The reason why a URL may not be used for a webhook; `None` if it may. */
export type CheckUrl = (url: string) => Effect.Effect<Option.Option<string>>

/** Characters that a URL parser would remove silently. */
const blank = /[\s\p{Cc}]/u

const checkBy =
  (check: (url: string) => Effect.Effect<unknown, EgressRefused>): CheckUrl =>
  (url) => {
    if (Array.from(url).length > webhookUrlCharactersMax) {
      return Effect.succeedSome(`The URL is longer than ${webhookUrlCharactersMax} characters`)
    }
    if (blank.test(url)) {
      return Effect.succeedSome("the URL contains a space or a control character")
    }
    return check(url).pipe(
      Effect.as(Option.none()),
      Effect.catchTag("EgressRefused", ({ reason }) => Effect.succeedSome(reason))
    )
  }

const schemes = ["https"] as const

/** The rules of docs/reference/webhooks.md#endpoints for URLs. Resolves the host, for at most 2 seconds. */
export const makeUrlCheck = Effect.map(EgressGuard, (guard) =>
  checkBy((url) => guard.checkSaved(url, { schemes }))
)

/** Checks without resolving the host, for many URLs at once. Each attempt resolves and checks the host. */
export const makeUrlTextCheck = Effect.map(EgressGuard, (guard) =>
  checkBy((url) => guard.checkUrl(url, { schemes }))
)

/** 2011 with the pointer to the field. */
export const urlRefused = (fault: FieldFault): Problem =>
  new Problem({ code: 2011, detail: fault.detail, errors: [fault] })
