import type { AccountSetting, Provider } from "../../domain/Provider.ts"
import type { AccountChange } from "./AccountChange.ts"
import type { AccountRefusal } from "./AccountRefusal.ts"
import { Circuit, restMillis } from "./Circuit.ts"
import type { Caller } from "./Circuit.ts"
import { toldRates } from "./RateLimits.ts"
import type { ToldRate } from "./RateLimits.ts"

/** The state of an account in `/metrics`: the worst of its models. */
export interface AccountState {
  readonly id: string
  readonly provider: Provider
  readonly circuit: "Closed" | "Open" | "HalfOpen"
  /** What remains of a pause after a rate limit or a refused key. */
  readonly pausedMillis: number
}

/** The account as shown to the operator. */
export interface AccountDetails extends AccountState {
  readonly account: AccountSetting
  /** False if it was removed from the configuration but still has tasks to finish. */
  readonly isConfigured: boolean
  readonly isDraining: boolean
  /** Models that had a pause or a failure. */
  readonly models: ReadonlyArray<{
    readonly model: string
    readonly circuit: AccountState["circuit"]
    readonly pausedMillis: number
  }>
  /** The latest refusal of the service's own account that this process has seen. */
  readonly lastRefusal: Refusal | undefined
  /** Whether the vendor refused the account and nothing has succeeded since. */
  readonly isRefused: boolean
  readonly failedCheck: FailedCheck | undefined
  /** Rates reported by the latest responses of this process, by model. */
  readonly rates: ReadonlyArray<ToldRate & { readonly model: string }>
}

/** The operator's last check, if it failed and nothing has succeeded since. */
interface FailedCheck {
  readonly atMillis: number
  readonly status: number | null
  readonly detail: string
}

interface Refusal {
  readonly atMillis: number
  readonly model: string
  readonly status: number
  /** What was refused: the key or payment, or a scope of the key. */
  readonly concerns: AccountRefusal
}

/** The model and caller for which a call counts. */
export interface CallSource {
  /** The name by which the vendor counts rates: the upstream model, or the route without a model. */
  readonly model: string
  readonly user: Caller
}

/** Connection errors, timeouts and 5xx. */
const failurePolicy = { failures: 5, openMillis: 10_000 }

/** An account that is unpaid or whose key is refused, until the operator acts. */
const refusalPolicy = { failures: 1, openMillis: 60_000 }

/** Providers that count all submits of an account together. docs/reference/vendors.md#accounts */
const countsByAccount: ReadonlySet<Provider> = new Set(["fal", "replicate"])

/** The most models remembered per account. Limited because clients may name any model on free routes. */
const modelsMax = 1000

class ModelState {
  readonly circuit = new Circuit(failurePolicy)
  isUsedUp = false
  #pausedUntil = 0
  #pauseMillis = 0

  pause(nowMillis: number, millis: number): void {
    this.#pausedUntil = nowMillis + millis
    this.#pauseMillis = millis
  }

  pausedMillis(nowMillis: number): number {
    return restMillis(this.#pausedUntil, this.#pauseMillis, nowMillis)
  }
}

/** The headers of a response, and when it arrived. */
interface Told {
  readonly headers: Parameters<typeof toldRates>[0]
  readonly atMillis: number
}

/** The most models per account whose rates are remembered. */
const toldMax = 100

/** The known state of an account: its circuits and pauses. */
export class TrackedAccount {
  readonly account: AccountSetting
  /** Smooth weighted round robin: the account with the highest current weight is next. */
  currentWeight = 0
  readonly refusals = new Circuit(refusalPolicy)
  lastRefusal: Refusal | undefined
  failedCheck: FailedCheck | undefined
  /** Only models that had a pause or a failure. */
  readonly models = new Map<string, ModelState>()
  /** The latest headers with rates, by model; parsed only when the operator asks. */
  readonly told = new Map<string, Told>()

  constructor(account: AccountSetting) {
    this.account = account
  }

  keyOf(model: string): string {
    return model !== "" && countsByAccount.has(this.account.provider) ? "*" : model
  }

  model(model: string): ModelState | undefined {
    return this.models.size === 0 ? undefined : this.models.get(this.keyOf(model))
  }

  changeModel(model: string): ModelState {
    const key = this.keyOf(model)
    const known = this.models.get(key)
    if (known !== undefined) return known
    const [oldest] = this.models.keys()
    if (oldest !== undefined && this.models.size >= modelsMax) this.models.delete(oldest)
    const made = new ModelState()
    this.models.set(key, made)
    return made
  }

  tell(model: string, told: Told): void {
    if (this.told.size >= toldMax && !this.told.has(model)) this.told.clear()
    this.told.set(model, told)
  }

  /** Milliseconds until the account may be called; 0 if it may be called now. */
  brokenMillis({ model, user }: CallSource, nowMillis: number): number {
    const circuit = this.model(model)?.circuit
    return Math.max(
      this.refusals.isOpenFor(user, nowMillis) ? this.refusals.remaining(nowMillis) : 0,
      circuit?.isOpenFor(user, nowMillis) === true ? circuit.remaining(nowMillis) : 0
    )
  }

  pausedMillis(model: string, nowMillis: number): number {
    return this.model(model)?.pausedMillis(nowMillis) ?? 0
  }

  /** Applies a change from a call of this or another process. */
  apply(change: AccountChange, now: number): void {
    switch (change._tag) {
      case "Failed":
        return this.changeModel(change.model).circuit.fail(change.user, change.digest, now)
      case "Refused":
        return this.refusals.fail(change.user, String(change.user), now)
      case "Paused": {
        const state = this.changeModel(change.model)
        state.pause(now, change.millis)
        state.isUsedUp = change.isUsedUp
        return
      }
      case "CheckFailed":
        this.failedCheck = { atMillis: now, status: change.status, detail: change.detail }
        return
      case "Closed":
        if (change.model !== null) return this.model(change.model)?.circuit.succeed()
        this.failedCheck = undefined
        return this.refusals.succeed()
    }
  }
}

export const stateOf = (
  { account, models, refusals }: TrackedAccount,
  now: number
): AccountState => {
  const states = [...models.values()]
  const circuits = new Set(states.map(({ circuit }) => circuit.state(now)))
  return {
    id: account.id,
    provider: account.provider,
    circuit: (["Open", "HalfOpen"] as const).find((it) => circuits.has(it)) ?? "Closed",
    pausedMillis: Math.max(refusals.remaining(now), ...states.map((it) => it.pausedMillis(now)))
  }
}

export const detailsOf = (
  it: TrackedAccount,
  { now, ...flags }: Pick<AccountDetails, "isConfigured" | "isDraining"> & { readonly now: number }
): AccountDetails =>
  Object.assign(stateOf(it, now), flags, {
    account: it.account,
    models: Array.from(it.models, ([model, state]) => ({
      model,
      circuit: state.circuit.state(now),
      pausedMillis: state.pausedMillis(now)
    })),
    lastRefusal: it.lastRefusal,
    isRefused: !it.refusals.isAtRest,
    failedCheck: it.failedCheck,
    rates: [...it.told].flatMap(([model, { atMillis, headers }]) =>
      toldRates(headers, atMillis, now).map((rate) => Object.assign(rate, { model }))
    )
  })
