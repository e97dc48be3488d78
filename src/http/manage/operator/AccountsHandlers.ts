import { DateTime, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AccountControl, remedyOf } from "../../../process/AccountControl.ts"
import type { ControlledAccount } from "../../../process/AccountControl.ts"
import { ConcurrencyLimiter } from "../../../tasks/submission/ConcurrencyLimiter.ts"
import { requireOperator } from "../../server/Authentication.ts"
import { Api } from "../Api.ts"

/** Vendor accounts: state, drain, resume, check. */
export const layer = HttpApiBuilder.group(
  Api,
  "accounts",
  Effect.fnUntraced(function* (handlers) {
    const control = yield* AccountControl
    const { queues } = yield* ConcurrencyLimiter

    const shown = (all: ReadonlyArray<ControlledAccount>) =>
      Effect.map(queues, (lines) => all.map((account) => show(account, lines)))
    const one = <E>(change: Effect.Effect<ControlledAccount, E>) =>
      Effect.flatMap(change, (account) => Effect.map(queues, (lines) => show(account, lines)))

    return handlers.handleAll({
      listAccounts: Effect.fnUntraced(function* () {
        yield* requireOperator
        return { data: yield* Effect.flatMap(control.list, shown), next_cursor: null }
      }),
      drainAccount: ({ params }) => Effect.andThen(requireOperator, one(control.drain(params.id))),
      resumeAccount: ({ params }) =>
        Effect.andThen(requireOperator, one(control.resume(params.id))),
      checkAccount: Effect.fnUntraced(function* ({ params }) {
        yield* requireOperator
        const { detail, httpStatus, millis, ok } = yield* control.check(params.id)
        return { ok, http_status: httpStatus, duration_ms: Math.round(millis), detail }
      })
    })
  })
)

interface Line {
  readonly line: string
  readonly held: number
  readonly waiting: number
}

const circuits = { Closed: "closed", HalfOpen: "half_open", Open: "open" } as const

/** The line of an account, or of one of its models. */
const isOf = (id: string, { line }: Line): boolean => line === id || line.startsWith(`${id}/`)

const show = ({ details, drainingSince }: ControlledAccount, lines: ReadonlyArray<Line>) => {
  const { account, circuit, isDraining, lastRefusal, models, pausedMillis } = details
  const own = lines.filter((line) => isOf(account.id, line))
  return {
    id: account.id,
    provider: account.provider,
    base_url: account.baseUrl,
    weight: account.weight,
    status: isDraining ? ("draining" as const) : ("active" as const),
    draining_since: drainingSince,
    circuit: circuits[circuit],
    paused_seconds: Math.max(0, pausedMillis) / 1000,
    models: models.map(({ circuit, model, pausedMillis }) => ({
      model,
      circuit: circuits[circuit],
      paused_seconds: pausedMillis / 1000
    })),
    slots: {
      limit: account.concurrent ?? null,
      held: own.reduce((sum, { held }) => sum + held, 0),
      waiting: own.reduce((sum, { waiting }) => sum + waiting, 0)
    },
    last_fault:
      lastRefusal === undefined
        ? null
        : {
            at: DateTime.makeUnsafe(lastRefusal.atMillis),
            model: lastRefusal.model,
            http_status: lastRefusal.status,
            remedy: remedyOf(lastRefusal.concerns)
          }
  }
}
