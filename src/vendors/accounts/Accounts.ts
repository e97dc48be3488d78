import { Clock, Context, Effect, Equal, Layer, Option, Redacted, Result, Schema } from "effect"
import { Catalog } from "../../catalog/Catalog.ts"
import { AppConfig } from "../../config/Config.ts"
import type { AccountSetting, Provider } from "../../domain/Provider.ts"
import type { UpstreamResponse } from "../upstream/UpstreamExchange.ts"
import type { AccountChange } from "./AccountChange.ts"
import { accountRefusal } from "./AccountRefusal.ts"
import { ratePauseOf, tellsRates } from "./RateLimits.ts"
import { detailsOf, stateOf, TrackedAccount } from "./TrackedAccount.ts"
import type { AccountDetails, AccountState, CallSource } from "./TrackedAccount.ts"

export type { AccountDetails, AccountState, CallSource } from "./TrackedAccount.ts"

/**
 * No account of a provider may be called now. `rate`: all of them have used up the rate of the model. `broken`: none is
 * usable, because it was refused or cut off by its circuit.
 */
export class NoAccountFree extends Schema.TaggedError<NoAccountFree>()("NoAccountFree", {
  reason: Schema.Literals(["rate", "broken"]),
  /** The account that is free first. */
  soonest: Schema.optionalKey(Schema.String),
  retryAfterMillis: Schema.Finite
}) {}

/** The part of a response that may pause an account. */
export type AccountResponse = Pick<UpstreamResponse, "status" | "headers" | "body">

/**
 * The upstream accounts: their order and pauses. Rates and circuits apply to one model, refusals to the whole
 * account. ADR 0070 and ADR 0132.
 */
export class Accounts extends Context.Service<
  Accounts,
  {
    /** Whether there is a key for this provider; without one the simulator serves it. */
    readonly isConfigured: (provider: Provider) => boolean
    /** Includes accounts that have left the configuration. */
    readonly find: (id: string) => Option.Option<AccountSetting>
    readonly configured: () => ReadonlyArray<AccountSetting>
    /** Replaces the configured accounts: vendors come and go with the catalog. */
    readonly setConfigured: (accounts: ReadonlyArray<AccountSetting>) => void
    readonly idsOf: (provider: Provider) => ReadonlyArray<string>
    /**
     * The accounts to which a call may be sent, in order of preference; `among` restricts the choice. A draining
     * account gets no new work: it is left out unless `among` contains only draining accounts. The first place rotates
     * by weight. If all accounts have reached the rate limit, returns the one that is free first.
     */
    readonly order: (
      provider: Provider,
      source: CallSource,
      nowMillis: number,
      among?: ReadonlyArray<AccountSetting>
    ) => Result.Result<ReadonlyArray<AccountSetting>, NoAccountFree>
    /** Call right before sending: `false` if the account was cut off since `order`. */
    readonly admits: (
      account: AccountSetting,
      source: CallSource,
      digest: () => string,
      nowMillis: number
    ) => boolean
    /** Pauses the account after a 429, a refusal or an exhausted limit. */
    readonly observe: (
      account: AccountSetting,
      source: CallSource,
      response: AccountResponse,
      nowMillis: number
    ) => void
    /** Records the operator's check: its failure, or `null` for success. */
    readonly checked: (
      account: AccountSetting,
      status: number | null,
      fault: string | null,
      nowMillis: number
    ) => void
    /** Records a failure. The circuit of the model counts distinct failed requests. */
    readonly failed: (
      account: AccountSetting,
      source: CallSource,
      digest: string,
      nowMillis: number
    ) => void
    /** Records a success, which closes the circuit of the model. */
    readonly succeeded: (account: AccountSetting, source: CallSource) => void
    /** Receives the changes caused by calls of this process. */
    readonly onChange: (handler: (change: AccountChange) => void) => void
    /** Applies a change made by another process. */
    readonly apply: (change: AccountChange, nowMillis: number) => void
    readonly states: Effect.Effect<ReadonlyArray<AccountState>>
    readonly details: Effect.Effect<ReadonlyArray<AccountDetails>>
    readonly isDraining: (account: AccountSetting) => boolean
    /** Replaces the set of draining accounts. */
    readonly setDraining: (ids: ReadonlySet<string>) => void
    /** Replaces the accounts that were removed from the configuration. Their jobs are still finished. ADR 0186. */
    readonly setDeparted: (accounts: ReadonlyArray<AccountSetting>) => void
  }
>()("gateway/vendors/Accounts") {
  static readonly layer = (settings: ReadonlyArray<AccountSetting>) =>
    Layer.sync(Accounts, () => make(settings))

  /** The accounts of the environment, with the vendors of the catalog. */
  static readonly layerConfigured = Layer.effect(
    Accounts,
    Effect.gen(function* () {
      const { accountsWith } = yield* AppConfig
      const { providers } = (yield* Catalog).current().content
      return make(yield* accountsWith(providers))
    })
  )
}

/** Advances the round robin and returns the accounts in order. */
const nextOrder = (tracked: ReadonlyArray<TrackedAccount>): ReadonlyArray<AccountSetting> => {
  const first = tracked[0]
  if (tracked.length === 1 && first !== undefined) return [first.account]
  let total = 0
  for (const it of tracked) {
    it.currentWeight += it.account.weight
    total += it.account.weight
  }
  const sorted = [...tracked].sort((a, b) => b.currentWeight - a.currentWeight)
  if (sorted[0] !== undefined) sorted[0].currentWeight -= total
  return sorted.map(({ account }) => account)
}

const none: ReadonlyArray<string> = []

type Waiting = readonly [TrackedAccount, number]

const byWait = ([, a]: Waiting, [, b]: Waiting): number => a - b

const noneFree = (
  reason: "rate" | "broken",
  waiting: ReadonlyArray<Waiting>
): Result.Result<never, NoAccountFree> => {
  const first = waiting.toSorted(byWait)[0]
  const soonest = first === undefined ? {} : { soonest: first[0].account.id }
  return Result.fail(new NoAccountFree({ reason, ...soonest, retryAfterMillis: first?.[1] ?? 0 }))
}

const orderOf = (
  all: ReadonlyArray<TrackedAccount>,
  source: CallSource,
  now: number
): Result.Result<ReadonlyArray<AccountSetting>, NoAccountFree> => {
  const usable = all.filter((it) => it.brokenMillis(source, now) === 0)
  if (usable.length === 0) {
    return noneFree(
      "broken",
      all.map((it): Waiting => [it, it.brokenMillis(source, now)])
    )
  }
  const free = usable.filter((it) => it.pausedMillis(source.model, now) === 0)
  if (free.length > 0) return Result.succeed(nextOrder(free))
  // The last account is tried anyway and the vendor decides, unless the vendor has reported that nothing is left
  const paused = usable.map((it): Waiting => [it, it.pausedMillis(source.model, now)])
  const [last] = paused.filter(([it]) => it.model(source.model)?.isUsedUp !== true).toSorted(byWait)
  return last === undefined ? noneFree("rate", paused) : Result.succeed([last[0].account])
}

type Changes = Pick<
  Accounts["Service"],
  "admits" | "observe" | "checked" | "failed" | "succeeded" | "onChange" | "apply"
>

/** Records the changes to accounts that calls cause. */
const changesOf = (byId: ReadonlyMap<string, TrackedAccount>): Changes => {
  const handlers: Array<(change: AccountChange) => void> = []
  const apply = (change: AccountChange, now: number) => {
    byId.get(change.id)?.apply(change, now)
  }
  const change = (made: AccountChange, now: number) => {
    apply(made, now)
    for (const handle of handlers) handle(made)
  }
  return {
    admits: ({ id }, { model, user }, digest, now) => {
      const found = byId.get(id)
      return (
        found === undefined ||
        (found.refusals.admits(user, () => String(user), now) &&
          (found.model(model)?.circuit.admits(user, digest, now) ?? true))
      )
    },
    observe: ({ id }, { model, user }, response, now) => {
      const found = byId.get(id)
      if (found === undefined) return
      if (tellsRates(response.headers)) {
        found.tell(model, { headers: response.headers, atMillis: now })
      }
      const refusal = accountRefusal(response)
      if (refusal !== undefined) {
        const { status } = response
        found.lastRefusal = { atMillis: now, model, status, concerns: refusal }
      }
      if (refusal === "account") return change({ _tag: "Refused", id, user }, now)
      const isNews = !found.refusals.isAtRest || (found.failedCheck && response.status < 300)
      if (refusal === undefined && isNews) change({ _tag: "Closed", id, model: null }, now)
      const pause = ratePauseOf(response.status, response.headers, now)
      if (pause !== undefined) change({ _tag: "Paused", id, model, ...pause }, now)
    },
    checked: ({ id }, status, detail, now) => {
      if (detail !== null) return change({ _tag: "CheckFailed", id, status, detail }, now)
      if (byId.get(id)?.failedCheck !== undefined) {
        change({ _tag: "Closed", id, model: null }, now)
      }
    },
    failed: ({ id }, { model, user }, digest, now) =>
      change({ _tag: "Failed", id, model, user, digest }, now),
    succeeded: ({ id }, { model }) => {
      // Runs for every call; most have nothing to close
      if (byId.get(id)?.model(model)?.circuit.isAtRest === false) {
        change({ _tag: "Closed", id, model }, 0)
      }
    },
    onChange: (handler) => {
      handlers.push(handler)
    },
    apply
  }
}

/** An unchanged account keeps its state when the configuration is read again. */
const isSame = ({ key, ...a }: AccountSetting, { key: other, ...b }: AccountSetting): boolean =>
  Redacted.value(key) === Redacted.value(other) && Equal.equals(a, b)

const make = (settings: ReadonlyArray<AccountSetting>): Accounts["Service"] => {
  let tracked: ReadonlyArray<TrackedAccount> = []
  let byProvider: ReadonlyMap<string, ReadonlyArray<TrackedAccount>> = new Map()
  let ids: ReadonlyMap<string, ReadonlyArray<string>> = new Map()
  const byId = new Map<string, TrackedAccount>()
  let departed: ReadonlyArray<TrackedAccount> = []
  const setConfigured = (accounts: ReadonlyArray<AccountSetting>) => {
    const next = accounts.map((account) => {
      const known = byId.get(account.id)
      return known !== undefined && isSame(known.account, account)
        ? known
        : new TrackedAccount(account)
    })
    for (const { account } of tracked) byId.delete(account.id)
    for (const it of next) byId.set(it.account.id, it)
    tracked = next
    // Those that have come back stay in `byId` when the departed ones are read again
    departed = departed.filter(({ account }) => !next.some((it) => it.account.id === account.id))
    byProvider = Map.groupBy(tracked, ({ account }) => account.provider)
    ids = new Map(
      Array.from(byProvider, ([provider, all]) => [provider, all.map(({ account }) => account.id)])
    )
  }
  setConfigured(settings)
  let draining: ReadonlySet<string> = new Set()
  const withoutDraining = (all: ReadonlyArray<TrackedAccount>) =>
    draining.size === 0 ? all : all.filter(({ account }) => !draining.has(account.id))

  return Accounts.of({
    isConfigured: (provider) => byProvider.has(provider),
    find: (id) => Option.map(Option.fromUndefinedOr(byId.get(id)), ({ account }) => account),
    configured: () => tracked.map(({ account }) => account),
    setConfigured,
    idsOf: (provider) => ids.get(provider) ?? none,
    order: (provider, source, now, among) => {
      const all = byProvider.get(provider) ?? []
      if (among === undefined) return orderOf(withoutDraining(all), source, now)
      const few = all.filter(({ account }) => among.some(({ id }) => id === account.id))
      const active = withoutDraining(few)
      return orderOf(active.length === 0 ? few : active, source, now)
    },
    ...changesOf(byId),
    states: Effect.map(Clock.currentTimeMillis, (now) => tracked.map((it) => stateOf(it, now))),
    details: Effect.map(Clock.currentTimeMillis, (now) =>
      [...tracked, ...departed].map((it) =>
        detailsOf(it, {
          isConfigured: !departed.includes(it),
          isDraining: departed.includes(it) || draining.has(it.account.id),
          now
        })
      )
    ),
    isDraining: ({ id }) => draining.has(id) || departed.some((it) => it.account.id === id),
    setDeparted: (accounts) => {
      const others = accounts.filter(({ id }) => !tracked.some((it) => it.account.id === id))
      const next = others.map((account) => {
        const known = byId.get(account.id)
        return known?.account === account ? known : new TrackedAccount(account)
      })
      for (const { account } of departed) byId.delete(account.id)
      for (const it of next) byId.set(it.account.id, it)
      departed = next
    },
    setDraining: (ids) => {
      draining = ids
    }
  })
}
