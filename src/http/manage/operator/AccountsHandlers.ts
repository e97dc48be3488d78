import { DateTime, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../../contract/Api.ts"
import { AccountControl, remedyOf } from "../../../process/accounts/AccountControl.ts"
import type { ControlledAccount } from "../../../process/accounts/AccountControl.ts"
import { ConcurrencyLimiter } from "../../../tasks/submission/ConcurrencyLimiter.ts"
import { OperatorFaults } from "../../../tasks/submission/OperatorFaults.ts"
import { requireOperator } from "../../server/access/Authentication.ts"

/** Vendor accounts: status, drain, resume and check. */
export const layer = HttpApiBuilder.group(
  Api,
  "accounts",
  Effect.fnUntraced(function* (handlers) {
    const control = yield* AccountControl
    const faults = yield* OperatorFaults
    const { queues } = yield* ConcurrencyLimiter
    const ofTasks = Effect.all({ lines: queues, faults: faults.last })

    const shown = (all: ReadonlyArray<ControlledAccount>) =>
      Effect.map(ofTasks, (known) => all.map((account) => show(account, known)))
    const one = <E>(change: Effect.Effect<ControlledAccount, E>) =>
      Effect.flatMap(change, (account) => Effect.map(ofTasks, (known) => show(account, known)))

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

/** What the tasks of all processes report about accounts. */
interface OfTasks {
  readonly lines: Effect.Success<ConcurrencyLimiter["Service"]["queues"]>
  readonly faults: Effect.Success<OperatorFaults["Service"]["last"]>
}

const circuits = { Closed: "closed", HalfOpen: "half_open", Open: "open" } as const

const show = (controlled: ControlledAccount, known: OfTasks) => {
  const { charged, details, drainingSince } = controlled
  const { account, circuit, isConfigured, isDraining, models, pausedMillis } = details
  return {
    id: account.id,
    provider: account.provider,
    base_url: account.baseUrl,
    weight: account.weight,
    configured: isConfigured,
    status: isDraining ? ("draining" as const) : ("active" as const),
    draining_since: drainingSince,
    health: healthOf(controlled),
    circuit: circuits[circuit],
    paused_seconds: Math.max(0, pausedMillis) / 1000,
    models: models.map(({ circuit, model, pausedMillis }) => ({
      model,
      circuit: circuits[circuit],
      paused_seconds: pausedMillis / 1000
    })),
    slots: slotsOf(controlled, known),
    rate: ratesOf(controlled),
    spend_today: charged,
    last_fault: lastFaultOf(controlled, known),
    failed_check: failedCheckOf(controlled)
  }
}

const failedCheckOf = ({ details: { failedCheck } }: ControlledAccount) => {
  if (failedCheck === undefined) return null
  const { atMillis, detail, status } = failedCheck
  return { at: timeOf(atMillis), http_status: status, detail }
}

const healthOf = ({ details }: ControlledAccount) => {
  if (details.isRefused || details.failedCheck !== undefined) return "unavailable" as const
  const isWhole = details.circuit === "Closed" && details.pausedMillis <= 0
  return isWhole ? ("healthy" as const) : ("degraded" as const)
}

/** Sums the account's own queue or, if its models have separate limits, the queues of its models. */
const slotsOf = ({ details: { account } }: ControlledAccount, { lines }: OfTasks) => {
  const own = lines.filter(({ line }) => line === account.id || line.startsWith(`${account.id}/`))
  return {
    limit: account.concurrent ?? null,
    held: own.reduce((sum, { held }) => sum + held, 0),
    waiting: own.reduce((sum, { waiting }) => sum + waiting, 0)
  }
}

const timeOf = (millis: number) => DateTime.makeUnsafe(millis)

const ratesOf = ({ details, rates }: ControlledAccount) => [
  ...rates.map(({ key, resetsAt, spacingSeconds, used }) => {
    const [name = "", model = null] = key.slice(details.id.length + 1).split(/\/(.*)/u)
    return { name, model, limit: Math.round(60 / spacingSeconds), used, resets_at: resetsAt }
  }),
  ...details.rates.map(({ limit, model, name, resetsAtMillis, used }) => ({
    name,
    model,
    limit,
    used,
    resets_at: resetsAtMillis === undefined ? null : timeOf(resetsAtMillis)
  }))
]

/** The latest fault of the account: a refusal that this process saw, or a fault that a task of any process reported. */
const lastFaultOf = ({ details: { account, lastRefusal } }: ControlledAccount, known: OfTasks) => {
  const faults = known.faults
    .filter(({ accountId }) => accountId.endsWith(`@${account.id}`))
    .map(({ at, httpStatus, model, remedy }) => ({ at, model, http_status: httpStatus, remedy }))
  if (lastRefusal !== undefined) {
    const { atMillis, concerns, model, status } = lastRefusal
    const remedy = remedyOf(concerns)
    faults.push({ at: timeOf(atMillis), model, http_status: status, remedy })
  }
  const latest = faults.toSorted(
    (a, b) => DateTime.toEpochMillis(b.at) - DateTime.toEpochMillis(a.at)
  )
  return latest[0] ?? null
}
