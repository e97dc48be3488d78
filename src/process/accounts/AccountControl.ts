import { Clock, Context, DateTime, Effect, Layer, Option, Redacted, Result } from "effect"
import { Catalog } from "../../catalog/Catalog.ts"
import { AppConfig } from "../../config/Config.ts"
import * as Credits from "../../domain/Credits.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import type { AccountSetting, Provider } from "../../domain/Provider.ts"
import { accountRefusal } from "../../vendors/accounts/AccountRefusal.ts"
import { Accounts } from "../../vendors/accounts/Accounts.ts"
import type { AccountDetails } from "../../vendors/accounts/Accounts.ts"
import { freeCallOf, isGood, sendFreeCall } from "../../vendors/accounts/FreeCalls.ts"
import { Upstream } from "../../vendors/upstream/Upstream.ts"
import * as VendorHttp from "../../vendors/VendorHttp.ts"
import { Process, readAfterEach } from "../heartbeat/Process.ts"
import { AccountDrainStore } from "./AccountDrainStore.ts"
import { AccountFiguresStore } from "./AccountFiguresStore.ts"
import type { LeasedRate } from "./AccountFiguresStore.ts"
import { AccountKeys } from "./AccountKeys.ts"

export interface ControlledAccount {
  readonly details: AccountDetails
  readonly drainingSince: DateTime.Utc | null
  /** The account's charges for tasks and calls today (UTC). */
  readonly charged: Credits.Credits
  /** Rate limits of tasks. Those that vendors report in responses to calls are in `details`. */
  readonly rates: ReadonlyArray<LeasedRate>
}

/** The outcome of a free call to the vendor. */
export interface AccountCheck {
  readonly ok: boolean
  /** Null if there was no response. */
  readonly httpStatus: number | null
  readonly millis: number
  readonly detail: string | null
}

type Failure = Problem | StoreUnavailable

/** Lets the operator inspect, drain and check vendor accounts. docs/reference/vendors.md#draining-an-account */
export class AccountControl extends Context.Service<
  AccountControl,
  {
    readonly list: Effect.Effect<ReadonlyArray<ControlledAccount>, StoreUnavailable>
    /** Stops new work at the account in all processes; running work finishes there. Fails with 2005. */
    readonly drain: (id: string) => Effect.Effect<ControlledAccount, Failure>
    /** Fails with 2005, or with 2010 if the account has left the configuration. */
    readonly resume: (id: string) => Effect.Effect<ControlledAccount, Failure>
    /** Makes a free call to the vendor. Fails with 2005, or with 2010 if no free call is known for it. */
    readonly check: (id: string) => Effect.Effect<AccountCheck, Failure>
    /** Deletes charges of days before yesterday. */
    readonly deleteOld: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/process/AccountControl") {
  static readonly layer = Layer.effect(
    AccountControl,
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const store = yield* AccountDrainStore
      const figures = yield* AccountFiguresStore
      const keys = yield* AccountKeys
      const { database } = yield* AppConfig
      const { changed: changes, publishChange } = yield* Process
      const drainsChanged = yield* changes("drains")
      const send = yield* makeFreeCall
      let since = new Map<string, DateTime.Utc>()

      const refresh = Effect.map(store.list, (rows) => {
        since = new Map(rows.map((row) => [row.accountId, row.since]))
        accounts.setDraining(new Set(since.keys()))
      })
      yield* refresh
      // An embedded store has only one process
      if (database._tag === "Postgres") {
        yield* readAfterEach(drainsChanged, refresh)
      }

      const list = Effect.suspend(() => listAll(accounts, figures, keys, since))
      const find = (id: string) =>
        Effect.flatMap(list, (all) =>
          Effect.mapError(
            Effect.fromOption(Option.fromUndefinedOr(all.find(({ details }) => details.id === id))),
            () => problem(2005, `There is no account ${id.slice(0, 60)}`)
          )
        )
      const publish = Effect.sync(() => publishChange("drains"))
      const changed = (id: string, change: Effect.Effect<void, StoreUnavailable>) =>
        Effect.uninterruptible(
          Effect.flatMap(Effect.all([find(id), change, publish, refresh]), () => find(id))
        )

      return AccountControl.of({
        list,
        drain: (id) =>
          changed(
            id,
            Effect.flatMap(DateTime.now, (now) => store.drain(id, now))
          ),
        resume: (id) =>
          Effect.flatMap(find(id), ({ details }) =>
            details.isConfigured
              ? changed(id, store.resume(id))
              : problem(
                  2010,
                  "This account is not configured: add it to the configuration to use it again"
                )
          ),
        deleteOld: Effect.flatMap(DateTime.now, (now) =>
          figures.deleteBefore(DateTime.subtract(now, { days: 1 }))
        ),
        check: (id) => Effect.flatMap(find(id), ({ details }) => send(details.account))
      })
    })
  ).pipe(Layer.provide([AccountDrainStore.layer, AccountFiguresStore.layer]))
}

/** All accounts with their figures. `since` contains when each drained account began to drain. */
const listAll = Effect.fnUntraced(function* (
  accounts: Accounts["Service"],
  figures: AccountFiguresStore["Service"],
  keys: AccountKeys["Service"],
  since: ReadonlyMap<string, DateTime.Utc>
) {
  const departed = yield* keys.departed
  const now = yield* DateTime.now
  const charged = new Map(
    (yield* figures.charged(now)).map(({ accountId, credits }) => [accountId, credits])
  )
  const rates = yield* figures.rates(now)
  return (yield* accounts.details).map((details) => ({
    details,
    drainingSince: since.get(details.id) ?? departed.get(details.id) ?? null,
    charged: charged.get(details.id) ?? Credits.zero,
    rates: rates.filter(({ key }) => key.startsWith(`${details.id}/`))
  }))
})

/** A free call: the list of models if the provider has passthrough routes; otherwise a provider-specific call. */
export const makeFreeCall = Effect.gen(function* () {
  const accounts = yield* Accounts
  const catalog = yield* Catalog
  const http = yield* VendorHttp.make()
  const upstream = yield* Upstream

  const callOf = (account: AccountSetting) => {
    const own = freeCallOf(account.provider)
    if (own !== undefined) {
      const call = sendFreeCall(http, account, Redacted.value(account.key), own)
      return {
        model: modelOf(own.path),
        call: Effect.mapError(call, ({ message }) => ({ detail: message })),
        isGood: (status: number) => isGood(own, status)
      }
    }
    const route = routeOf(catalog, account.provider)
    if (route === undefined) return undefined
    const model = modelOf(route.path)
    const call = upstream.send(account, { ...listing, path: route.path, model, route })
    return { model, call, isGood: (status: number) => status < 300 }
  }

  return Effect.fn("AccountControl.check")(function* (account: AccountSetting) {
    const free = callOf(account)
    if (free === undefined) {
      return yield* problem(
        2010,
        `No free call of ${account.provider} is known: this account cannot be checked`
      )
    }
    const began = yield* Clock.currentTimeMillis
    const result = yield* Effect.result(free.call)
    const now = yield* Clock.currentTimeMillis
    const millis = now - began
    if (Result.isFailure(result)) {
      const { detail } = result.failure
      accounts.checked(account, null, detail, now)
      return { ok: false, httpStatus: null, millis, detail }
    }
    const { status } = result.success
    const ok = free.isGood(status)
    accounts.observe(account, { model: free.model, user: null }, result.success, now)
    const refusal = accountRefusal(result.success)
    const fault = refusal === undefined ? `The vendor returned HTTP ${status}` : remedyOf(refusal)
    const detail = ok ? null : fault
    accounts.checked(account, status, detail, now)
    return { ok, httpStatus: status, millis, detail }
  })
})

/** The name under which pauses caused by a check are counted. */
const modelOf = (path: string): string => `GET ${path.replace(/\?.*$/u, "")}`

const listing = {
  method: "GET",
  query: "",
  // Required by Anthropic; other vendors ignore it
  headers: ["anthropic-version", "2023-06-01"],
  body: new Uint8Array(),
  user: "operator",
  key: "operator",
  watch: undefined
} as const

/** The path of the model list, for a provider with passthrough routes. */
const routeOf = (catalog: Catalog["Service"], provider: Provider) =>
  catalog
    .current()
    .upstream.routes.find(
      (route) =>
        route.provider === provider &&
        route.method === "GET" &&
        route.meter.per === "nothing" &&
        route.path.endsWith("/models")
    )

/** What the operator can do about a refusal of the service's own account. */
export const remedyOf = (concerns: "account" | "scope"): string =>
  concerns === "account"
    ? "Check the account's API key and base URL in the configuration, and its bill at the vendor"
    : "Give the account's API key the permission that this route needs, at the vendor"
