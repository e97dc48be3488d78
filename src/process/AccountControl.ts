import { Clock, Context, DateTime, Effect, Layer, Option, Result } from "effect"
import { Catalog } from "../catalog/Catalog.ts"
import { AppConfig } from "../config/Config.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import type { AccountSetting } from "../domain/Provider.ts"
import { accountRefusal } from "../vendors/accounts/AccountRefusal.ts"
import { Accounts } from "../vendors/accounts/Accounts.ts"
import type { AccountDetails } from "../vendors/accounts/Accounts.ts"
import { Upstream } from "../vendors/upstream/Upstream.ts"
import { AccountDrainStore } from "./AccountDrainStore.ts"
import { Process } from "./Process.ts"

export interface ControlledAccount {
  readonly details: AccountDetails
  readonly drainingSince: DateTime.Utc | null
}

/** The response to a free call. */
export interface AccountCheck {
  readonly ok: boolean
  /** Null: there was no response. */
  readonly httpStatus: number | null
  readonly millis: number
  readonly detail: string | null
}

type Failure = Problem | StoreUnavailable

/** What the operator does with vendor accounts. docs/reference/vendors.md#draining-an-account */
export class AccountControl extends Context.Service<
  AccountControl,
  {
    readonly list: Effect.Effect<ReadonlyArray<ControlledAccount>>
    /** No new work in any process; what it has is finished there. Fails with 2005. */
    readonly drain: (id: string) => Effect.Effect<ControlledAccount, Failure>
    readonly resume: (id: string) => Effect.Effect<ControlledAccount, Failure>
    /** Asks the vendor for its list of models. Fails with 2005, or 2010 where no free call is known. */
    readonly check: (id: string) => Effect.Effect<AccountCheck, Failure>
  }
>()("gateway/process/AccountControl") {
  static readonly layer = Layer.effect(
    AccountControl,
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const store = yield* AccountDrainStore
      const { database } = yield* AppConfig
      const process = yield* Process
      const drainsChanged = yield* process.changed("drains")
      const send = yield* makeFreeCall
      let since = new Map<string, DateTime.Utc>()

      const refresh = Effect.map(store.list, (rows) => {
        since = new Map(rows.map((row) => [row.accountId, row.since]))
        accounts.setDraining(new Set(since.keys()))
      })
      yield* refresh
      // One process alone has an embedded store
      if (database._tag === "Postgres") {
        yield* refresh.pipe(
          Effect.catchCause((cause) => Effect.logDebug("Drains could not be looked at", cause)),
          (read) => Effect.andThen(drainsChanged, read),
          Effect.forever,
          Effect.forkScoped
        )
      }

      const list = Effect.map(accounts.details, (all) =>
        all.map((details) => ({ details, drainingSince: since.get(details.id) ?? null }))
      )
      const find = (id: string) =>
        Effect.flatMap(list, (all) =>
          Effect.mapError(
            Effect.fromOption(Option.fromUndefinedOr(all.find(({ details }) => details.id === id))),
            () => problem(2005, `There is no account ${id.slice(0, 60)}`)
          )
        )
      const changed = (id: string, change: Effect.Effect<void, StoreUnavailable>) =>
        Effect.uninterruptible(
          find(id).pipe(
            Effect.andThen(change),
            Effect.tap(() => Effect.sync(() => process.publishChange("drains"))),
            Effect.andThen(refresh),
            Effect.andThen(find(id))
          )
        )

      return AccountControl.of({
        list,
        drain: (id) =>
          changed(
            id,
            Effect.flatMap(DateTime.now, (now) => store.drain(id, now))
          ),
        resume: (id) => changed(id, store.resume(id)),
        check: (id) => Effect.flatMap(find(id), ({ details }) => send(details.account))
      })
    })
  ).pipe(Layer.provide(AccountDrainStore.layer))
}

/** The list of models: every provider with routes has it, and it costs nothing. */
const makeFreeCall = Effect.gen(function* () {
  const accounts = yield* Accounts
  const catalog = yield* Catalog
  const upstream = yield* Upstream

  return Effect.fn("AccountControl.check")(function* (account: AccountSetting) {
    const { provider } = account
    const route = catalog
      .current()
      .upstream.routes.find(
        (route) =>
          route.provider === provider &&
          route.method === "GET" &&
          route.meter.per === "nothing" &&
          route.path.endsWith("/models")
      )
    if (route === undefined) {
      return yield* problem(
        2010,
        `No free call of ${provider} is known: this account cannot be checked`
      )
    }
    const source = { model: `GET ${route.path}`, user: null }
    const began = yield* Clock.currentTimeMillis
    const result = yield* Effect.result(
      upstream.send(account, {
        method: "GET",
        path: route.path,
        query: "",
        headers: provider === "anthropic" ? ["anthropic-version", "2023-06-01"] : [],
        body: new Uint8Array(),
        model: source.model,
        user: "operator",
        key: "operator",
        route,
        watch: undefined
      })
    )
    const now = yield* Clock.currentTimeMillis
    const millis = now - began
    if (Result.isFailure(result)) {
      return { ok: false, httpStatus: null, millis, detail: result.failure.detail }
    }
    const { status } = result.success
    accounts.observe(account, source, result.success, now)
    const refusal = accountRefusal(result.success)
    return {
      ok: status < 300,
      httpStatus: status,
      millis,
      detail:
        refusal === undefined
          ? status < 300
            ? null
            : `The vendor returned HTTP ${status}`
          : remedyOf(refusal)
    }
  })
})

/** What the operator does about a refusal of the service's own account. */
export const remedyOf = (concerns: "account" | "scope"): string =>
  concerns === "account"
    ? "Check the account's API key and base URL in the configuration, and its bill at the vendor"
    : "Give the account's API key the permission that this route needs, at the vendor"
